package linear

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Write writes a history: one operation per line, as JSON. [Read] reads it.
func Write(w io.Writer, history []Operation) error {
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(buffered)
	for i, op := range history {
		for _, rec := range []*Record{op.Given, op.Next, op.Heir, op.Got} {
			if rec != nil && !rec.isText() {
				return fmt.Errorf("linear: operation %d: a record that is no UTF-8 would not be read back as it was", i)
			}
		}
		if err := lines.Encode(op); err != nil {
			return fmt.Errorf("linear: write operation %d: %w", i, err)
		}
	}
	return buffered.Flush()
}

// Read reads what [Write] has written.
func Read(r io.Reader) ([]Operation, error) {
	lines := json.NewDecoder(r)
	var history []Operation
	for {
		var op Operation
		err := lines.Decode(&op)
		if errors.Is(err, io.EOF) {
			return history, nil
		}
		if err != nil {
			return nil, fmt.Errorf("linear: read operation %d: %w", len(history), err)
		}
		history = append(history, op)
	}
}

// drawing is how long the search may take that goes into a picture.
const drawing = 10 * time.Second

// Save writes the judged history to history.ndjson in the folder dir, which it
// makes if need be. If the verdict is broken, it also draws the first broken
// story, as far as it can be told, in broken.html. It returns the files.
func (v Verdict) Save(dir string) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	path := filepath.Join(dir, "history.ndjson")
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("linear: %w", err)
	}
	if err := errors.Join(Write(f, v.history), f.Close()); err != nil {
		return nil, err
	}
	files = append(files, path)
	if v.Result != Broken {
		return files, nil
	}
	all, err := stories(v.history)
	if err != nil {
		return files, err
	}
	first := slices.IndexFunc(all, func(s *story) bool { return s.name == v.Names[0] })
	_, info := porcupine.CheckOperationsVerbose(model(), all[first].operations(), drawing)
	path = filepath.Join(dir, "broken.html")
	if err := porcupine.VisualizePath(model(), info, path); err != nil {
		return files, fmt.Errorf("linear: draw: %w", err)
	}
	return append(files, path), nil
}
