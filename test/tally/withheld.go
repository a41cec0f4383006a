package main

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A sample is how the kernel has counted the time of all processors, in ticks.
type sample struct {
	at            time.Time
	all, withheld uint64
}

// A meter samples what a host withholds from this machine: time in which a processor of it
// had something to run, and the host ran something else ("steal" in proc_stat(5)). What a
// test says of deadlines means nothing then.
type meter struct {
	mu      sync.Mutex
	samples []sample
}

// watch samples until ctx ends.
func (m *meter) watch(ctx context.Context) {
	each := time.NewTicker(time.Second)
	defer each.Stop()
	for {
		text, err := os.ReadFile("/proc/stat")
		if err != nil {
			return // nobody counts it here
		}
		if s, ok := parse(text); ok {
			s.at = time.Now()
			m.mu.Lock()
			m.samples = append(m.samples, s)
			m.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-each.C:
		}
	}
}

// parse reads the first line of /proc/stat.
func parse(text []byte) (sample, bool) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 9 || fields[0] != "cpu" {
		return sample{}, false
	}
	var s sample
	for i, field := range fields[1:9] { // what guests had is in the first two already
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return sample{}, false
		}
		s.all += n
		if i == 7 {
			s.withheld = n
		}
	}
	return s, true
}

// share returns how much of the processors' time was withheld in a stretch, 0 to 1.
func (m *meter) share(from, to time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var first, last *sample
	for i := range m.samples {
		s := &m.samples[i]
		if first == nil || s.at.Before(from) {
			first = s
		}
		if last == nil || last.at.Before(to) {
			last = s
		}
	}
	if first == nil || last.all <= first.all {
		return 0
	}
	return float64(last.withheld-first.withheld) / float64(last.all-first.all)
}
