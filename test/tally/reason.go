package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	// mostReasons is how many reasons of a failure are kept, and mostLines how many lines of each.
	mostReasons, mostLines = 3, 25
	// mostColumns is where a line is cut off.
	mostColumns = 400
)

// reasons returns why a test failed, in short: the first assertions that failed, or, if there are none, what
// it said first.
func (f failure) reasons() string {
	lines := strings.Split(strings.TrimRight(f.said, "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "=== ") })
	var kept []string
	found := 0
	for i, line := range lines {
		if strings.Contains(line, "\tError Trace:") && found < mostReasons {
			found++
			kept = append(kept, lines[i:min(i+mostLines, len(lines))]...)
		}
	}
	if found == 0 {
		kept = lines[:min(mostReasons*mostLines, len(lines))]
	}
	var text strings.Builder
	for _, line := range kept {
		if len(line) > mostColumns {
			line = line[:mostColumns] + " […]"
		}
		fmt.Fprintln(&text, line)
	}
	return text.String()
}

// keep appends to a file why tests failed. No name means that nobody wants to know.
func (c *count) keep(name string) error {
	if name == "" || len(c.failures) == 0 {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for _, f := range c.failures {
		if _, err = fmt.Fprintf(file, "%s %s, after %v\n%s\n", f.pkg, f.test, f.to.Sub(f.from), f.reasons()); err != nil {
			break
		}
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
