package page

import (
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
)

// An end is what is told when there is no more to see.
type end struct {
	mu   sync.Mutex
	news chan struct{} // closed when the text changes
	at   time.Duration // zero before the end
	text string
	well bool
}

// End says that nothing more will happen, how that has come, and whether all is well, and lets
// the page's clock stand still. Called again, it changes what is said.
func (p *Page) End(text string, well bool) {
	e := &p.end
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at == 0 {
		e.at = boottime.Now()
	}
	e.text, e.well = text, well
	close(e.news)
	e.news = make(chan struct{})
}

// tell adds to a state what End has said, if it was called. now is when the state was made.
func (e *end) tell(s *state, now time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at != 0 {
		s.Over, s.Well = e.text, e.well
		s.Clock, s.Now = s.Clock.Add(e.at-now), s.Now-milliseconds(now-e.at)
	}
}

// next is closed when End is called next.
func (e *end) next() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.news
}
