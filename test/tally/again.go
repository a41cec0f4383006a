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

var (
	// late is what an assertion says that waited in vain.
	late = regexp.MustCompile(`Condition never satisfied|this machine is too busy|the watch yields nothing|context deadline exceeded|i/o timeout|not the leader|leadership lost while committing`)
	// grave is what means something on the slowest machine, beside whatever came late.
	grave = regexp.MustCompile(`DATA RACE|panic:|two lead|BROKEN|before its TTL|before the term of`)
	// assertion is what testify says of one that failed, but for its message.
	assertion = regexp.MustCompile(`(?s)\tError Trace:.*?\tTest:`)
)

// lateness reports whether all that a test found wrong is that something did not come in
// time. What shows only on a machine that stands still may be the very thing that this
// library is to prevent, so nothing else is excused.
func (f failure) lateness() bool {
	found := assertion.FindAllString(f.said, -1)
	return len(found) > 0 && !grave.MatchString(f.said) &&
		!slices.ContainsFunc(found, func(text string) bool { return !late.MatchString(text) })
}

// excusable reports whether whatever has failed was late while the host withheld the
// processors, and says so of each.
func (c *count) excusable(m *meter) bool {
	if len(c.failures) == 0 || c.broken {
		return false
	}
	for _, f := range c.failures {
		if !f.lateness() || m.share(f.from, f.to) < tooMuch {
			return false
		}
	}
	for _, f := range c.failures {
		fmt.Printf("tally: %s was late while the host withheld %.0f %% of this machine's processors: it is run again\n", f.test, 100*m.share(f.from, f.to))
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
