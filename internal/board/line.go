package board

import "time"

const (
	// few is how many looks of a board are under way at once, so that refreshes find a
	// connection and a server that answers, however many safes are followed.
	few = 16

	// long is how long a look may take before others no longer wait for it.
	long = 100 * time.Millisecond
)

// line has a topic look when it is its turn. This and the following methods are called with mu held.
func (b *Board) line(t *Topic) {
	t.lined = true
	b.lined = append(b.lined, t)
	b.advance()
}

// advance starts the looks whose turn it is.
func (b *Board) advance() {
	for b.looks < few && len(b.lined) > 0 {
		t := b.lined[0]
		b.lined[0] = nil
		b.lined = b.lined[1:]
		t.lined = false
		if t.over || t.err != nil {
			continue
		}
		b.looks++
		t.late = time.AfterFunc(long, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			t.makeRoom() // for that look, or a later one of the topic
		})
		t.begin()
	}
}

// makeRoom lets another topic look: this one has looked, or takes long.
func (t *Topic) makeRoom() {
	if t.late != nil {
		t.late.Stop()
		t.late = nil
		t.board.looks--
		t.board.advance()
	}
}
