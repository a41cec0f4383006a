//go:build unix

package main

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

// Any program that may write to the store can write such records into a roster.
func TestWhatSomebodyElseHasPutIntoARosterIsCountedAndNotPrinted(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, p *place) {
		address, err := stores.Parse(p.store, func(string) string { return "" })
		require.NoError(t, err)
		store, err := address.Open()
		require.NoError(t, err)
		defer store.Close()
		if _, ok := store.KV.(kv.Roster); !ok {
			t.Skip("it keeps no roster")
		}
		for key, rec := range map[string]kv.Record{
			"1": {Signature: "x\x1b[2J/1", Note: "{}"},
			"3": {Signature: strings.Repeat("x", 1<<10) + "/3", Note: "{}"},
			"4": {Signature: "x/another", Note: "{}"},
			"5": {Signature: "x/5", Note: "\x1b[2J", Value: "\x1b[2J\xff\n"},
			"6": {Signature: "evil:1/6", Note: "{}", Value: "\x1b[2J\xff\n"}, // as a candidate of an ID of its own could
		} {
			rec.TTL = time.Minute
			rec, err := store.KV.Create(t.Context(), kv.MemberName("job", key), rec)
			require.NoError(t, err)
			defer func() { require.NoError(t, store.KV.Delete(t.Context(), kv.MemberName("job", key), rec)) }()
		}
		p.stand("a", "elected", "--roster")
		eventually(t, "a in the roster", func() bool { return len(p.status().Members) == 6 })
		status, table, stderr := finish(t, "status", "--store", p.store, "job")
		require.Zero(t, status, stderr)
		require.Contains(t, table, "2 candidates, 4 foreign")
		_, lines, _ := finish(t, "status", "--store", p.store, "-o", "json", "job")
		_, offered, _ := finish(t, "__complete", "transfer", "--store", p.store, "job", "--to", "")
		require.Equal(t, "evil:1\tcandidate\n:4\n", offered)
		for _, said := range []string{table, lines, offered} {
			require.NotContains(t, strings.Map(func(r rune) rune {
				if r == '\n' || r == '\t' || unicode.IsPrint(r) && r != unicode.ReplacementChar {
					return -1
				}
				return '?'
			}, said), "?", "%q", said)
		}
	})
}
