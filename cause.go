package election

import (
	"errors"
	"fmt"

	"github.com/electkv/election/internal/machine"
)

// causeOf returns the cause of a term's end.
func (c *campaign) causeOf(cause machine.Cause) error {
	switch cause {
	case machine.Expired:
		return errExpired
	case machine.Taken:
		return errTaken
	case machine.Unhealthy:
		return fmt.Errorf("%w: %w", ErrResigned, c.told.illness)
	case machine.NoCause, machine.Sightless, machine.Resigned:
	}
	return ErrResigned
}

// reasonOf returns the same in a word.
func reasonOf(cause machine.Cause) Reason {
	switch cause {
	case machine.Expired:
		return ReasonExpired
	case machine.Taken:
		return ReasonTaken
	case machine.Unhealthy:
		return ReasonUnhealthy
	case machine.NoCause, machine.Sightless, machine.Resigned:
	}
	return ReasonResigned
}

var (
	errExpired = fmt.Errorf("%w: not refreshed in time", ErrLost)
	errTaken   = fmt.Errorf("%w: the record is gone or somebody else's", ErrLost)
)

// machineCause returns the machine's name for the cause of a term's end.
func machineCause(cause error) machine.Cause {
	switch {
	case errors.Is(cause, errUnhealthy):
		return machine.Unhealthy
	case errors.Is(cause, ErrLost):
		return machine.Expired
	}
	return machine.Resigned
}
