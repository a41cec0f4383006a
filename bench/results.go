package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// results are what one call of the bench has measured, as they are written down.
type results struct {
	Label   string `json:",omitempty"`
	Commit  string
	Changed bool `json:",omitempty"` // the source differs from the commit
	Date    time.Time
	Took    string
	Command string
	Machine machine
	Load    []string // the load averages, before and after
	Servers map[string]string
	Peers   map[string]string
	Runs    []run
}

// A run is one trial that is over.
type run struct {
	Work      string
	Store     string
	Contender string
	Setting   setting
	TTL       string
	Round     int
	Metrics   map[string]summary `json:",omitempty"`
	Notes     []string           `json:",omitempty"`
	Error     string             `json:",omitempty"`
}

// save writes a file of its own, and returns its path.
func (r results) save(folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, fmt.Sprintf("%s-%.8s.json", r.Date.UTC().Format("20060102-1504"), r.Commit))
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
}

func loadResults(path string) (results, error) {
	var r results
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("bench: %s: %w", path, err)
	}
	return r, nil
}
