package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const said = `
{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestTable"}
{"Action":"output","Package":"a","Test":"TestTable","Output":"=== RUN   TestTable\n"}
{"Action":"run","Package":"a","Test":"TestTable/one"}
{"Action":"run","Package":"a","Test":"TestTable/two"}
{"Action":"output","Package":"a","Test":"TestTable/one","Output":"all is well\n"}
{"Action":"output","Package":"a","Test":"TestTable/two","Output":"this is wrong\n"}
{"Action":"pass","Package":"a","Test":"TestTable/one"}
{"Action":"fail","Package":"a","Test":"TestTable/two"}
{"Action":"fail","Package":"a","Test":"TestTable"}
{"Action":"run","Package":"a","Test":"TestElsewhere"}
{"Action":"skip","Package":"a","Test":"TestElsewhere"}
{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}
{"Action":"fail","Package":"a"}
{"Action":"run","Package":"b","Test":"TestCrash"}
{"Action":"output","Package":"b","Test":"TestCrash","Output":"panic: oh\n"}
{"Action":"output","Package":"b","Output":"FAIL\tb\t0.1s\n"}
{"Action":"fail","Package":"b"}
{"ImportPath":"c","Action":"build-output","Output":"c.go:1:1: no package\n"}
{"Action":"run","Package":"d","Test":"TestGood"}
{"Action":"output","Package":"d","Test":"TestGood","Output":"simulation: 3 terms\n"}
{"Action":"pass","Package":"d","Test":"TestGood"}
{"Action":"output","Package":"d","Output":"PASS\n"}
{"Action":"output","Package":"d","Output":"ok  \td\t0.1s\n"}
{"Action":"pass","Package":"d"}
`

func TestWhatPackagesAndFailedTestsSayAndFiguresArePrinted(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, newCount().read(strings.NewReader(said), &out))
	require.Equal(t, "this is wrong\n=== RUN   TestTable\nFAIL\ta\t0.1s\nFAIL\tb\t0.1s\npanic: oh\nc.go:1:1: no package\nsimulation: 3 terms\nok  \td\t0.1s\n", out.String())
}

func TestTestsThatHoldOthersDoNotCount(t *testing.T) {
	c := newCount()
	require.NoError(t, c.read(strings.NewReader(said), new(bytes.Buffer)))
	require.Equal(t, map[string]*tally{"a": {passed: 1, failed: 1, skipped: 1}, "d": {passed: 1}}, c.packages)
}

func TestTheTableEndsWithTheSum(t *testing.T) {
	c := newCount()
	require.NoError(t, c.read(strings.NewReader(said), new(bytes.Buffer)))
	var out bytes.Buffer
	require.NoError(t, c.print(&out, 90*time.Second))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, []string{"4", "1", "1", "in", "all,", "in", "1m30s"}, strings.Fields(lines[len(lines)-1]))
}

func TestWhatIsNotAnEventIsAnError(t *testing.T) {
	require.Error(t, newCount().read(strings.NewReader("{"), new(bytes.Buffer)))
}
