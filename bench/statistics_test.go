package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASummaryInterpolatesBetweenFigures(t *testing.T) {
	s := summarize([]float64{5, 1, 3, 2, 4})
	require.Equal(t, summary{N: 5, Min: 1, P10: 1.4, Median: 3, P90: 4.6, P99: 4.96, Max: 5}, s)
	require.Equal(t, summary{N: 1, Min: 7, P10: 7, Median: 7, P90: 7, P99: 7, Max: 7}, summarize([]float64{7}))
}

func TestFiguresHaveThreeDigitsAndAUnit(t *testing.T) {
	for _, row := range []struct {
		x    float64
		unit unit
		text string
	}{
		{0.000_000_5, seconds, "0.5 µs"},
		{0.001_234, seconds, "1.23 ms"},
		{0.0123, seconds, "12.3 ms"},
		{61.5, seconds, "61.5 s"},
		{-0.25, ttls, "-0.25"},
		{-0.001, ttls, "0"},
		{0.4712, share, "47.1 %"},
		{512, octets, "512 B"},
		{33 * 1024, octets, "33 KB"},
		{10_000, number, "10,000"},
		{1234.5, rate, "1,235/s"},
		{2, number, "2"},
	} {
		require.Equal(t, row.text, format(row.x, row.unit))
	}
}

// made returns results of handovers on etcd between 2 processes.
func made(medians map[string][]float64) results {
	var r results
	for name, all := range medians {
		for round, x := range all {
			r.Runs = append(r.Runs, run{
				Work: "handover", Store: inEtcd, Contender: name, Setting: setting{Candidates: 2, Processes: 2}, Round: round,
				Metrics: map[string]summary{"handover": summarize([]float64{x})},
			})
		}
	}
	return r
}

func TestTheBestPeerIsTheOneWithTheLeastMedian(t *testing.T) {
	r := made(map[string][]float64{
		plainName: {0.5}, "concurrency.Mutex": {9, 2, 3}, "concurrency.Election": {1, 8, 4}, "limit": {0.1},
	})
	s := setting{Candidates: 2, Processes: 2}
	require.InDelta(t, 3, r.bestPeer("handover", inEtcd, s, "handover"), 0)
	require.InDelta(t, 0.1, r.limit("handover", inEtcd, setting{Candidates: 1000, Processes: 10}, "handover"), 0)
	require.True(t, math.IsNaN(r.bestPeer("handover", inRedis, s, "handover")))
}

func TestAGoalIsHeldAgainstTheBestPeer(t *testing.T) {
	met := judge(made(map[string][]float64{plainName: {1, 1, 1}, "concurrency.Mutex": {2, 2, 2}}))
	require.Len(t, met, 1)
	require.True(t, met[0].Met)
	require.Equal(t, "0.5", met[0].Figure)
	missed := judge(made(map[string][]float64{plainName: {1, 1.1, 1.1}, "concurrency.Mutex": {2, 2, 2}}))
	require.False(t, missed[0].Met)
}
