package machine

import "time"

const (
	firstOdds = 7 // 1 in 128
	maxOdds   = 14
	stages    = 5
)

// stage returns how long to wait before claiming a vacancy that a thousand candidates may see,
// or one alone. A few claim at once. At each later stage, four times as many of the others do,
// unless they see by then that a candidate was granted it. Every candidate learns from the
// outcome of its claims how few the first must be: at first, 1 in 128. For the heir's place,
// which is not urgent, the stages are as long as a busy store takes to tell a
// thousand watches which candidate was granted it.
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

// granted and refused take in the outcome of a claim on a vacancy that others may have seen.
func (m *Memory) granted() { m.Odds = max(m.Odds-4, -firstOdds) }
func (m *Memory) refused() { m.Odds = min(m.Odds+3, maxOdds-firstOdds) }
