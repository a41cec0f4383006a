package gather

// Silent reports whether no alarm is set.
func Silent() bool {
	bellMu.Lock()
	defer bellMu.Unlock()
	return len(bells) == 0
}
