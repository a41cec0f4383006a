package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// silence is how long nothing is printed at most.
const silence = 30 * time.Second

// A progress is a writer that says what runs when nothing was written for a while. Its
// methods may be called from several goroutines.
type progress struct {
	mu      sync.Mutex
	w       io.Writer
	begun   time.Time
	written time.Time
	ended   int                 // tests
	running map[event]time.Time // outermost tests, since when
}

func newProgress(w io.Writer, now time.Time) *progress {
	return &progress{w: w, begun: now, written: now, running: map[event]time.Time{}}
}

// Write implements [io.Writer].
func (p *progress) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = time.Now()
	return p.w.Write(text)
}

// note takes in what go test says of a test.
func (p *progress) note(e event) {
	if e.Test == "" || strings.Contains(e.Test, "/") {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	test := event{Package: e.Package, Test: e.Test}
	switch e.Action {
	case "run", "cont":
		p.running[test] = e.Time
	case "pause": // it waits for its turn, with others
		delete(p.running, test)
	case "pass", "fail", "skip":
		p.ended++
		delete(p.running, test)
	}
}

// tell says what runs, if nothing was written for long enough.
func (p *progress) tell(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.written) < silence {
		return
	}
	p.written = now
	oldest := map[string]event{} // by package
	for test, since := range p.running {
		if was, ok := oldest[test.Package]; !ok || since.Before(p.running[was]) {
			oldest[test.Package] = test
		}
	}
	doing := "building"
	if len(oldest) > 0 {
		var tests []string
		for _, pkg := range slices.Sorted(maps.Keys(oldest)) {
			tests = append(tests, path.Base(pkg)+" "+oldest[pkg].Test)
		}
		doing = strings.Join(tests, ", ")
	}
	fmt.Fprintf(p.w, "tally: %v, %d tests done; now: %s\n", now.Sub(p.begun).Round(time.Second), p.ended, doing)
}

// watch tells what runs until ctx ends.
func (p *progress) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			p.tell(now)
		}
	}
}
