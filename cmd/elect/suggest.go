package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// meant returns what of all a word was probably meant to be, empty if nothing is like
// it.
func meant(word string, all []string) string {
	best, least := "", 2
	if len(word) > 5 {
		least = 3
	}
	for _, w := range all {
		if d := distance(word, w); d < least {
			best, least = w, d
		}
	}
	for _, w := range all {
		if best == "" && len(word) > 1 && strings.HasPrefix(w, word) {
			best = w
		}
	}
	return best
}

// meantCommand is what a message adds about a command that there is not.
func meantCommand(root *cobra.Command, word string) string {
	all := []string{}
	for _, c := range slices.Concat(commands(root), topics(root)) {
		all = append(all, c.Name())
	}
	if name := meant(word, all); name != "" {
		return "; did you mean " + name + "?"
	}
	return ""
}

// meantFlag is what a message adds about a flag that there is not.
func meantFlag(cmd *cobra.Command, wrong *pflag.NotExistError) string {
	all := []string{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	if name := meant(wrong.GetSpecifiedName(), all); name != "" && wrong.GetSpecifiedShortnames() == "" {
		return "; did you mean --" + name + "?"
	}
	return ""
}

// distance is how many letters have to be put in, left out, replaced or swapped with
// their neighbour to make one word of another (optimal string alignment).
func distance(a, b string) int {
	before, last := []int{}, make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
