package main

import (
	"bytes"
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

// failed returns the count of a test that took ten seconds, said something, and failed.
func failed(t *testing.T, says string) *count {
	t.Helper()
	c := newCount()
	require.NoError(t, c.read(strings.NewReader(`
{"Time":"2026-01-01T12:00:10Z","Action":"run","Package":"p","Test":"TestA"}
{"Time":"2026-01-01T12:00:10Z","Action":"run","Package":"p","Test":"TestA/case"}
{"Time":"2026-01-01T12:00:11Z","Action":"output","Package":"p","Test":"TestA/case","Output":"`+says+`\n"}
{"Time":"2026-01-01T12:00:20Z","Action":"fail","Package":"p","Test":"TestA/case"}
{"Time":"2026-01-01T12:00:20Z","Action":"fail","Package":"p","Test":"TestA"}
{"Time":"2026-01-01T12:00:20Z","Action":"fail","Package":"p"}
`), new(bytes.Buffer)))
	return c
}

func TestAFailureIsExcusedIfTheHostWithheldTheProcessors(t *testing.T) {
	c := failed(t, "too late")
	require.Equal(t, []failure{{pkg: "p", test: "TestA", from: noon.Add(10 * time.Second), to: noon.Add(20 * time.Second), said: "too late\n"}}, c.failures)
	require.True(t, c.excusable(withholding(30)))
	require.False(t, c.excusable(withholding(5)))
	require.False(t, c.excusable(new(meter)))
}

func TestSomeFailuresAreNeverExcused(t *testing.T) {
	for _, said := range []string{
		"WARNING: DATA RACE", "panic: oh", "ben 2 was elected 0.1 s before the term of anna 1 was over",
		"anna worked 0.2 s after its term", "BROKEN  one leader at a time    …", "BROKEN  tokens grow  …", "BROKEN  work only while leading …",
	} {
		require.False(t, failed(t, said).excusable(withholding(90)), said)
	}
}

func TestASleeperThatWokeAfterItsTermIsNoSuchFailure(t *testing.T) {
	require.True(t, failed(t, "kept  a sleeper finds out  cleo woke 2.44 s after its term and knew 6.2 ms later").excusable(withholding(30)))
}

func TestAPackageThatFailsWithoutATestIsNotExcused(t *testing.T) {
	c := failed(t, "too late")
	require.NoError(t, c.read(strings.NewReader(`{"Action":"fail","Package":"q"}`), new(bytes.Buffer)))
	require.False(t, c.excusable(withholding(90)))
}
