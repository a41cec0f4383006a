//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
)

func TestHistoryTellsWhoLedBeforeAndWhyItEnded(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		status, _, stderr := finish(t, "history", "--store", p.store, "job")
		require.Equal(t, statusNo, status)
		require.Contains(t, stderr, "nobody leads")

		a := p.stand("a", " elected ")
		b := p.stand("b", " heir ")
		a.send(t, syscall.SIGTERM)
		b.says(t, " elected ")
		c := p.stand("c", " heir ")
		p.stand("d", "waiting")
		b.send(t, syscall.SIGKILL)
		c.says(t, " elected ")

		var terms []snapshot.Term
		status, stdout, _ := finish(t, "history", "--store", p.store, "-o", "json", "job")
		require.Zero(t, status)
		for line := range strings.Lines(stdout) {
			var term snapshot.Term
			require.NoError(t, json.Unmarshal([]byte(line), &term), line)
			require.Equal(t, "job", term.Name)
			require.WithinDuration(t, time.Now(), term.Began, time.Minute)
			terms = append(terms, term)
		}
		require.Len(t, terms, 3)
		require.Equal(t, "a", terms[0].ID)
		require.Equal(t, election.ReasonStopped, terms[0].Reason)
		require.True(t, terms[0].HandedOver)
		require.Equal(t, "b", terms[1].ID)
		require.Equal(t, election.ReasonGone, terms[1].Reason)
		require.False(t, terms[1].HandedOver)
		require.Equal(t, "c", terms[2].ID)
		require.Zero(t, terms[2].Ended)
		require.Equal(t, p.status().Token, terms[2].Token)

		_, table, _ := finish(t, "history", "--store", p.store, "job")
		require.Contains(t, table, "stopped, handed over")
		require.Contains(t, table, "gone")
		require.Contains(t, table, "leads")
		require.Len(t, strings.Split(strings.TrimSpace(table), "\n"), 4)
	})
}
