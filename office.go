package election

import (
	"errors"
	"fmt"
	"log/slog"
)

// An office is what can be had by a signature in a safe.
type office string

const (
	leadership office = "leader"
	heirship   office = "heir"
	requests   office = "request" // none, but where requests are put
	holds      office = "hold"    // none, but where an election is closed
)

var (
	errPlaceLost = errors.New("election: the heir's place is lost")
	errTaken     = errors.New("the record is gone or somebody else's")
)

// won is what the log says of who has the office.
func (o office) won() string {
	if o == heirship {
		return "heir"
	}
	return "elected"
}

// ended is what the log says of who has it no longer, and how loud.
func (o office) ended() (slog.Level, string) {
	if o == heirship {
		return slog.LevelDebug, "heir no more"
	}
	return slog.LevelInfo, "term ended"
}

// roles are what a candidate is that has the office, and what it is afterwards.
func (o office) roles() (has, after Role) {
	if o == heirship {
		return RoleHeir, RoleCandidate
	}
	return RoleLeader, RoleOrdinary
}

// lost is the cause of a term that ended against the candidate's will.
func (o office) lost() error {
	if o == heirship {
		return errPlaceLost
	}
	return ErrLost
}

// taken is the same, if the record is gone.
func (o office) taken() error { return fmt.Errorf("%w: %w", o.lost(), errTaken) }
