package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// withholding returns a meter of a host that withheld a share of each second, for a minute.
func withholding(percent uint64) *meter {
	m := &meter{}
	for i := range uint64(60) {
		m.samples = append(m.samples, sample{at: noon.Add(time.Duration(i) * time.Second), all: 200 * i, withheld: 2 * percent * i})
	}
	return m
}

func TestTheShareIsThatOfTheStretch(t *testing.T) {
	m := withholding(0)
	for i := range m.samples[30:] {
		m.samples[30+i].withheld = uint64(i) * 100
	}
	require.Zero(t, m.share(noon, noon.Add(20*time.Second)))
	require.InDelta(t, 0.5, m.share(noon.Add(35*time.Second), noon.Add(45*time.Second)), 0.01)
	require.InDelta(t, 0.25, m.share(noon, noon.Add(time.Hour)), 0.02)
	require.Zero(t, new(meter).share(noon, noon.Add(time.Second)), "nobody counts it")
}

func TestTheKernelCountsWhatIsWithheld(t *testing.T) {
	s, ok := parse([]byte("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n"))
	require.True(t, ok)
	require.Equal(t, sample{all: 36, withheld: 8}, s)
	for _, text := range []string{"", "cpu", "cpu 1 2 3", "mem 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"} {
		_, ok := parse([]byte(text))
		require.False(t, ok, text)
	}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		_, ok := parse(text)
		require.True(t, ok, "%s", text)
	}
}

// failed returns the count of a test that took ten seconds and whose assertions failed with
// these errors.
func failed(t *testing.T, errs ...string) *count {
	t.Helper()
	c := newCount()
	lines := []string{"the command said: context deadline exceeded"}
	for _, err := range errs {
		lines = append(lines, "    a_test.go:1: ", "        \tError Trace:\t/a_test.go:1", "        \tError:      \t"+err, "        \tTest:       \tTestA", "        \tMessages:   \tcontext deadline exceeded")
	}
	var said strings.Builder
	for _, line := range lines {
		text, err := json.Marshal(event{Time: noon, Action: "output", Package: "p", Test: "TestA/case", Output: line + "\n"})
		require.NoError(t, err)
		said.Write(text)
	}
	require.NoError(t, c.read(strings.NewReader(`
{"Time":"2026-01-01T12:00:10Z","Action":"run","Package":"p","Test":"TestA"}
{"Time":"2026-01-01T12:00:10Z","Action":"run","Package":"p","Test":"TestA/case"}
`+said.String()+`
{"Time":"2026-01-01T12:00:20Z","Action":"fail","Package":"p","Test":"TestA/case"}
{"Time":"2026-01-01T12:00:20Z","Action":"fail","Package":"p","Test":"TestA"}
{"Time":"2026-01-01T12:00:20Z","Action":"fail","Package":"p"}
`), new(bytes.Buffer)))
	return c
}

const inVain = "Condition never satisfied"

func TestAFailureIsExcusedIfTheHostWithheldTheProcessors(t *testing.T) {
	c := failed(t, inVain, "this machine is too busy to refresh", "read tcp 127.0.0.1:2->127.0.0.1:1: i/o timeout")
	require.Len(t, c.failures, 1)
	f := c.failures[0]
	require.Equal(t, []string{"p", "TestA"}, []string{f.pkg, f.test})
	require.Equal(t, 10*time.Second, f.to.Sub(f.from))
	require.True(t, c.excusable(withholding(30)))
	require.False(t, c.excusable(withholding(5)))
	require.False(t, c.excusable(new(meter)))
}

func TestOnlyLatenessIsExcused(t *testing.T) {
	require.False(t, failed(t).excusable(withholding(90)), "nobody knows what it found")
	for _, found := range []string{
		"Should be false", "Should be zero, but was 1", "the record faded after 0.9s, before its TTL of 1s",
		"two leaders: b begins term 2", "WARNING: DATA RACE", "panic: oh", "BROKEN  one leader at a time",
	} {
		require.False(t, failed(t, found).excusable(withholding(90)), found)
		require.False(t, failed(t, inVain, found).excusable(withholding(90)), found)
	}
}

func TestAPackageThatFailsWithoutATestIsNotExcused(t *testing.T) {
	c := failed(t, inVain)
	require.NoError(t, c.read(strings.NewReader(`{"Action":"fail","Package":"q"}`), new(bytes.Buffer)))
	require.False(t, c.excusable(withholding(90)))
}
