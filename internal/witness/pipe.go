package witness

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// Tell returns what writes events to out, one per line, for [Hear]. It returns when the event is
// out of this process's hands, and fills in when it happened if the event does not say. If it
// cannot be written, gone is called: this process is not heard any more. Several goroutines may
// call it at once.
func Tell(out io.Writer, gone func(error)) (note func(history.Event)) {
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	return func(e history.Event) {
		if e.At == 0 {
			e.At = boottime.Now()
		}
		mu.Lock()
		defer mu.Unlock()
		if err := lines.Encode(e); err != nil {
			gone(fmt.Errorf("witness: tell an event: %w", err))
		}
	}
}

// Hear gives the events that [Tell] writes to note, until their input ends. A process that is
// killed may leave half a line, which is no event.
func Hear(in io.Reader, note func(history.Event)) {
	for lines := json.NewDecoder(in); ; {
		var e history.Event
		if lines.Decode(&e) != nil {
			return
		}
		note(e)
	}
}
