//go:build unix

package witness_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

// partVariable makes this program a process of a test.
const partVariable = "ELECTION_WITNESS_PART"

// A part is what a process is told: how it ends.
type part struct{ Status int }

func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(partVariable)
	if !ok {
		os.Exit(m.Run())
	}
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tell := witness.Tell(os.Stdout, func(error) { os.Exit(1) })
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		tell(history.Event{Kind: history.Asked, Text: lines.Text()})
	}
	os.Exit(p.Status)
}

func TestAProcessHasSaidAllWhenItHasEnded(t *testing.T) {
	cmd, err := witness.Again(partVariable, part{Status: 7})
	require.NoError(t, err)
	var last string
	p, err := witness.Start(cmd, func(e history.Event) {
		time.Sleep(time.Millisecond) // it ends long before
		last = e.Text
	})
	require.NoError(t, err)
	for i := range 300 {
		require.NoError(t, p.Order(fmt.Sprint("order ", i)))
	}
	require.NoError(t, p.Stdin.Close())
	require.EqualError(t, p.Wait(), "exit status 7")
	require.Equal(t, "order 299", last)
}
