package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	mostStreams = 64

	// heartbeat is how long a stream is silent at most. A browser that hears nothing for
	// longer begins anew.
	heartbeat = 10 * time.Second

	// breath is the least time between two messages: what changes meanwhile is in the next.
	breath = 50 * time.Millisecond

	// slowest is how long one message may take to be read.
	slowest = 10 * time.Second
)

// elections answers with everything that is known.
func (p *Page) elections(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(p.state(p.chronicle.Report(0))) // who has gone needs no answer
}

// events tells a browser what is known and what changes, until either side has enough. A
// browser that comes back says what it was told last (Last-Event-ID), and is told the rest.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	if p.streams.Add(1) > mostStreams {
		p.streams.Add(-1)
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d browsers look at this page already: close one of them.", mostStreams), http.StatusServiceUnavailable)
		return
	}
	defer p.streams.Add(-1)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // of a proxy
	s := &stream{w: w, control: http.NewResponseController(w)}
	seq := p.toldBefore(r.Header.Get("Last-Event-ID"))
	for {
		end := p.end.next()
		report := p.chronicle.Report(seq)
		seq = report.Seq
		if s.send(p.state(report), p.instance, seq) != nil || !pause(r.Context(), breath, nil, nil) || !pause(r.Context(), heartbeat, report.Next, end) {
			return
		}
	}
}

// toldBefore returns the number of the last change that this program has told a browser of,
// by the id of that message: zero if it was another run of the program, or nothing.
func (p *Page) toldBefore(id string) uint64 {
	instance, count, _ := strings.Cut(id, ".")
	seq, err := strconv.ParseUint(count, 10, 64)
	if err != nil || instance != p.instance {
		return 0
	}
	return seq
}

// A stream is a response that goes on.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// send sends a message. JSON has no line breaks, which would end it.
func (s *stream) send(state state, instance string, seq uint64) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(slowest)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "retry: 1000\nid: %s.%d\ndata: %s\n\n", instance, seq, text); err != nil {
		return err
	}
	return s.control.Flush()
}

// pause lets time pass, until something happens. It reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration, happens, ends <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-happens:
	case <-ends:
	case <-ctx.Done():
		return false
	}
	return true
}
