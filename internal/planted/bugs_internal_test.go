package planted

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/simulation"
)

func TestEachRuleHasAPlantedBug(t *testing.T) {
	caught := map[string]bool{}
	for _, b := range bugs {
		caught[b.finder()] = true
	}
	for _, rule := range oracle.All() {
		require.True(t, caught[nameOf(rule)], "no planted bug for %s", nameOf(rule))
	}
	for _, own := range simulation.Rules() {
		require.True(t, caught[nameOf(own)], "no planted bug for %s", nameOf(own))
	}
}
