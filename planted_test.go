package election_test

import (
	"testing"

	"github.com/electkv/election/internal/planted"
)

// Each planted bug is found by its rule.
func TestEachPlantedBugIsCaughtInTheSimulation(t *testing.T) { planted.CatchEach(t, engine) }
