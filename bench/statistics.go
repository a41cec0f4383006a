package main

import (
	"math"
	"slices"
)

// A summary says how a series of figures is spread.
type summary struct {
	N      int
	Min    float64
	P10    float64
	Median float64
	P90    float64
	P99    float64
	Max    float64
}

// summarize needs at least one figure.
func summarize(series []float64) summary {
	sorted := slices.Sorted(slices.Values(series))
	return summary{
		N:      len(sorted),
		Min:    sorted[0],
		P10:    quantile(sorted, 0.10),
		Median: quantile(sorted, 0.50),
		P90:    quantile(sorted, 0.90),
		P99:    quantile(sorted, 0.99),
		Max:    sorted[len(sorted)-1],
	}
}

// quantile interpolates between the two nearest of the sorted figures.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(math.Floor(at))
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}
