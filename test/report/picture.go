package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/electkv/election/internal/history"
)

// The rows of which there are pictures: a failover and a partition.
func drawn() []int { return []int{1, 15} }

// A picture is a drawn history of a row, or the reason why there is none.
type picture struct {
	Row     string
	File    string // in the folder
	Command string // plays the row again
	Missing string
}

// draw draws the pictures into a folder.
func (r *results) draw(results, folder string) ([]picture, error) {
	all := []picture{}
	for _, number := range drawn() {
		for _, store := range r.Stores {
			p, err := r.drawRow(store, number, results, folder)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// drawRow draws the first row of a number that was played on a store.
func (r *results) drawRow(store string, number int, results, folder string) (picture, error) {
	label := fault{Number: number}.label()
	rows := slices.DeleteFunc(slices.Clone(r.Faults[store]), func(f fault) bool { return f.Number != number })
	if len(rows) == 0 {
		return picture{Row: store + ", row " + label, Missing: "not run"}, nil
	}
	f := rows[0]
	p := picture{Row: fmt.Sprintf("%s, row %s, %s", store, f.label(), f.Fault)}
	if !f.Applies {
		p.Missing = "does not apply: " + f.Reason
		return p, nil
	}
	if f.History == "" {
		p.Missing = "its history was not kept"
		return p, nil
	}
	h, err := history.Load(filepath.Join(results, f.History))
	if errors.Is(err, os.ErrNotExist) {
		p.Missing = "its history is missing: " + f.History
		return p, nil
	}
	if err != nil {
		return p, err
	}
	var svg bytes.Buffer
	if err := history.SVG(&svg, h, p.Row); err != nil {
		return p, err
	}
	p.Command = h.Command
	p.File = fmt.Sprintf("%s-%s.svg", store, f.label())
	return p, os.WriteFile(filepath.Join(folder, p.File), svg.Bytes(), 0o644)
}
