package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheReasonsAreTheFirstAssertions(t *testing.T) {
	said := "=== RUN   TestA\n" + strings.Repeat("history\n", 100) +
		"    a_test.go:1: \n        \tError Trace:\t/a_test.go:1\n        \tError:      \tShould be zero\n        \tTest:       \tTestA\n"
	require.Equal(t, "        \tError Trace:\t/a_test.go:1\n        \tError:      \tShould be zero\n        \tTest:       \tTestA\n", failure{said: said}.reasons())
	long := failure{said: strings.Repeat(said+strings.Repeat("more\n", 100), 10)}.reasons()
	require.Equal(t, mostReasons*mostLines, strings.Count(long, "\n"))
}

func TestTheReasonsAreWhatWasSaidFirstWhereNoAssertionFailed(t *testing.T) {
	require.Equal(t, "    a_test.go:1: redis: broken\nmore\n", failure{said: "=== RUN   TestA\n    a_test.go:1: redis: broken\nmore\n"}.reasons())
	require.Equal(t, strings.Repeat("x", mostColumns)+" […]\n", failure{said: strings.Repeat("x", 1000)}.reasons())
	require.Equal(t, mostReasons*mostLines, strings.Count(failure{said: strings.Repeat("more\n", 1000)}.reasons(), "\n"))
}

func TestAPackageThatFailsWithoutATestHasAReason(t *testing.T) {
	c := newCount()
	require.NoError(t, c.read(strings.NewReader(`{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p"}
{"Action":"fail","Package":"q"}`), new(bytes.Buffer)))
	require.Len(t, c.failures, 2)
	require.Equal(t, "panic: test timed out\n", c.failures[0].reasons())
	require.Equal(t, "q", c.failures[1].pkg)
	require.True(t, c.broken)
}

func TestReasonsAreAppendedToAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "failures")
	require.NoError(t, newCount().keep(name))
	require.NoFileExists(t, name)
	c := newCount()
	c.failures = []failure{{pkg: "p", test: "TestA", from: noon, to: noon.Add(time.Second), said: "wrong\n"}}
	require.NoError(t, c.keep(""))
	require.NoError(t, c.keep(name))
	c.failures[0].test = "TestB"
	require.NoError(t, c.keep(name))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "p TestA, after 1s\nwrong\n\np TestB, after 1s\nwrong\n\n", string(text))
	require.Error(t, c.keep(t.TempDir()))
}
