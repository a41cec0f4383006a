package election

// A latch is something that happens once. It has a channel only while a goroutine waits
// for that. It is guarded by its owner's mutex.
type latch struct {
	open   bool
	waited chan struct{} // closed when it has happened; nil if no goroutine waits
}

// wait returns a channel that is closed when it has happened.
func (l *latch) wait() <-chan struct{} {
	if l.waited == nil {
		l.waited = make(chan struct{})
		if l.open {
			close(l.waited)
		}
	}
	return l.waited
}

// pass notes that it has happened.
func (l *latch) pass() {
	l.open = true
	if l.waited != nil {
		close(l.waited)
		l.waited = nil
	}
}
