package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Write writes a history, to be read by [Read].
func Write(w io.Writer, h History) error {
	buffered := bufio.NewWriter(w)
	out := json.NewEncoder(buffered)
	if err := out.Encode(h.About); err != nil {
		return err
	}
	for _, e := range h.Events {
		if err := out.Encode(e); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// Read reads what [Write] wrote, and sorts it.
func Read(r io.Reader) (History, error) {
	in := json.NewDecoder(r)
	in.DisallowUnknownFields()
	var h History
	if err := in.Decode(&h.About); err != nil {
		return History{}, fmt.Errorf("history: its first line: %w", err)
	}
	for {
		var e Event
		err := in.Decode(&e)
		if errors.Is(err, io.EOF) {
			h.Sort()
			return h, nil
		}
		if err != nil {
			return History{}, fmt.Errorf("history: event %d: %w", len(h.Events)+1, err)
		}
		h.Events = append(h.Events, e)
	}
}

// Save writes a history to a file.
func Save(path string, h History) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(Write(f, h), f.Close())
}

// Load reads a history from a file.
func Load(path string) (History, error) {
	f, err := os.Open(path)
	if err != nil {
		return History{}, err
	}
	h, err := Read(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return History{}, fmt.Errorf("%s: %w", path, err)
	}
	return h, nil
}
