package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProgressTellsWhatRunsWhenNothingWasPrintedForLong(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, noon)
	p.tell(noon.Add(silence - 1))
	require.Empty(t, out.String())
	p.tell(noon.Add(silence))
	p.tell(noon.Add(silence + time.Second))
	require.Equal(t, "tally: 30s, 0 tests done; now: building\n", out.String())

	out.Reset()
	for i, e := range []event{
		{Action: "run", Package: "x/etcd", Test: "TestOne"}, {Action: "run", Package: "x/etcd", Test: "TestTwo"},
		{Action: "run", Package: "x/etcd", Test: "TestTwo/case"}, {Action: "run", Package: "x/consul", Test: "TestSix"},
		{Action: "pass", Package: "x/etcd", Test: "TestTwo/case"}, {Action: "skip", Package: "x/etcd", Test: "TestOne"},
		{Action: "run", Package: "x/etcd", Test: "TestThree"}, {Action: "run", Package: "x/consul", Test: "TestFour"},
		{Action: "pause", Package: "x/consul", Test: "TestSix"}, {Action: "pass", Package: "x/etcd"},
	} {
		e.Time = noon.Add(time.Duration(i))
		p.note(e)
	}
	p.tell(noon.Add(2 * silence))
	require.Equal(t, "tally: 1m0s, 1 tests done; now: consul TestFour, etcd TestTwo\n", out.String())
}

func TestWhatIsPrintedPutsProgressOff(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, time.Now().Add(-time.Hour))
	c := newCount()
	c.note = p.note
	require.NoError(t, c.read(strings.NewReader(said), p))
	before := out.String()
	p.tell(time.Now())
	require.Equal(t, before, out.String())
	p.tell(time.Now().Add(silence))
	require.Contains(t, out.String(), "tally: 1h0m30s, 3 tests done; now: b TestCrash\n")
}
