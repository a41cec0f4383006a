package machine

import "time"

const (
	firstOdds = 7 // 1 in 128
	maxOdds   = 14
	stages    = 5
)

// stage returns how long to wait before a vacancy is claimed that a thousand may see, or
// one alone. A few claim at once; each stage later, four times as many of those who have
// not, unless they see by then that somebody was granted it. How few the first are, every
// candidate learns from what becomes of its claims: it is 1 in 128 at first. For the heir's
// place, for which nobody waits, the stages are as long as it takes a busy store to tell a
// thousand watches of the one that was granted it.
func (t *turn) stage(l *Lock) time.Duration {
	unit := t.cfg.Stage
	if l.Key == Place {
		unit = max(unit, t.cfg.Crowd/stages)
	}
	odds := firstOdds + int(t.Memory.Odds)
	for k := range stages {
		if chance := uint64(1) << max(odds-2*k, 0); t.draw()%chance == 0 {
			return time.Duration(k) * unit
		}
	}
	return stages * unit
}

// granted and refused take in what became of a claim on a vacancy that others may have seen.
func (m *Memory) granted() { m.Odds = max(m.Odds-4, -firstOdds) }
func (m *Memory) refused() { m.Odds = min(m.Odds+3, maxOdds-firstOdds) }
