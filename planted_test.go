package election_test

import (
	"testing"

	"github.com/electkv/election/internal/planted"
)

// Each planted bug is found by its rule.
func TestEachPlantedBugIsCaughtInTheSimulation(t *testing.T) { planted.CatchEach(t, engine) }

// Work begins once per hold, whatever fails.
func TestWorkBeginsOncePerHoldWhateverFails(t *testing.T) { planted.KeepHolds(t) }

// The stories that show it catch each mistake about holds.
func TestEachPlantedMistakeAboutHoldsIsCaught(t *testing.T) { planted.CatchEachAboutHolds(t) }
