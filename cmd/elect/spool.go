package main

import (
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	spoolLines    = 1000        // that wait at most
	spoolPatience = time.Second // at the end, with an output that takes nothing
)

// A spool writes lines without keeping anybody waiting: standard error may be a
// pipe that nobody reads, and what writes to the log may have a lease to keep. Lines
// that find no room are dropped, and counted.
type spool struct {
	out     io.Writer
	lines   chan []byte
	dropped atomic.Int64
	log     atomic.Pointer[slog.Logger] // of what the spool has to say itself
	closing chan struct{}
	written chan struct{} // closed after the last line
}

// newSpool returns a spool that must be closed.
func newSpool(out io.Writer) *spool {
	s := &spool{
		out: out, lines: make(chan []byte, spoolLines),
		closing: make(chan struct{}), written: make(chan struct{}),
	}
	s.log.Store(slog.New(newLineHandler(out, slog.LevelWarn)))
	go s.run()
	return s
}

// speakJSON has the spool say in JSON what it has to say itself, as all others do.
func (s *spool) speakJSON() { s.log.Store(slog.New(newJSONHandler(s.out, slog.LevelWarn))) }

// Write implements [io.Writer] for whole lines. It never waits and never fails.
func (s *spool) Write(line []byte) (int, error) {
	select {
	case s.lines <- append([]byte{}, line...):
	default:
		s.dropped.Add(1)
	}
	return len(line), nil
}

// run writes lines until the spool is closed, and then what is left.
func (s *spool) run() {
	defer close(s.written)
	closing := s.closing
	for open := true; open || len(s.lines) > 0; {
		select {
		case line := <-s.lines:
			s.write(line)
		case <-closing:
			closing, open = nil, false
		}
	}
}

func (s *spool) write(line []byte) {
	_, _ = s.out.Write(line) // there is nowhere to complain
	if n := s.dropped.Swap(0); n > 0 {
		s.log.Load().Warn("lines are missing here: they came faster than they could be written", "lines", n)
	}
}

// close waits until all is written, for no longer than a moment. What is written
// afterwards is lost.
func (s *spool) close() {
	close(s.closing)
	timer := time.NewTimer(spoolPatience)
	defer timer.Stop()
	select {
	case <-s.written:
	case <-timer.C:
	}
}
