package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// tooMuch is the share of the processors' time that, withheld, makes a failure mean
	// nothing.
	tooMuch = 0.1
	// rounds is how often a test is run again at most.
	rounds = 3
)

// A failure is a test that failed, and what it said.
type failure struct {
	pkg, test string
	from, to  time.Time
	said      string
}

// grave are failures that mean something on the slowest machine: two leaders, tokens that
// go back, work after a term, a race.
func (f failure) grave() bool {
	return regexp.MustCompile(`DATA RACE|before the term of|worked [^\n]* after its term|BROKEN +(one leader|tokens grow|work only)|panic:`).MatchString(f.said)
}

// excusable reports whether all of the failures may be due to the host, of whatever has
// failed, and says so of each.
func (c *count) excusable(m *meter) bool {
	if len(c.failures) == 0 || c.broken {
		return false
	}
	for _, f := range c.failures {
		share := m.share(f.from, f.to)
		if f.grave() || share < tooMuch {
			return false
		}
		fmt.Printf("tally: %s failed while the host withheld %.0f %% of this machine's processors: it is run again\n", f.test, 100*share)
	}
	return true
}

// again runs the tests that have failed once more, each package by itself, and returns what
// has failed now.
func again(ctx context.Context, m *meter, args []string, failures []failure) (*count, error) {
	tests := map[string][]string{}
	for _, f := range failures {
		tests[f.pkg] = append(tests[f.pkg], regexp.QuoteMeta(f.test))
	}
	flags := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		return !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "-run")
	})
	all := newCount()
	var last error
	for pkg, names := range tests {
		c, err := test(ctx, append(slices.Clone(flags), "-run=^("+strings.Join(names, "|")+")$", pkg))
		all.failures, all.broken = append(all.failures, c.failures...), all.broken || c.broken
		if err != nil {
			last = err
		}
	}
	if last != nil && !all.excusable(m) {
		return all, last
	}
	return all, nil
}

// persist runs the failed tests again, for as long as they fail by the host's doing. It
// returns nil if all have passed.
func persist(ctx context.Context, m *meter, args []string, c *count, err error) error {
	if err == nil || !c.excusable(m) {
		return err
	}
	failed := c.failures
	for range rounds {
		now, err := again(ctx, m, args, failed)
		if err != nil {
			return err
		}
		if failed = now.failures; len(failed) == 0 {
			fmt.Fprintln(os.Stdout, "tally: what failed has passed, run again")
			return nil
		}
	}
	return err
}
