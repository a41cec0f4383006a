//go:build unix

package doctor_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/doctor"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

const (
	patience = 30 * time.Second
	moment   = 5 * time.Millisecond
)

var update = flag.Bool("update", false, "write testdata anew")

// A street is a server, with a prefix of the test's own, where locks stand.
type street struct {
	*testing.T
	ctx    context.Context
	url    func(params string) string // of a store with the prefix
	prefix string
	told   strings.Builder
}

func newStreet(t *testing.T) *street {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return &street{T: t, ctx: ctx, prefix: "doctor-" + rand.Text()}
}

// open opens a store with these parameters in its URL.
func (s *street) open(params string) *stores.Store {
	s.Helper()
	address, err := stores.Parse(s.url(params), func(string) string { return "" })
	require.NoError(s, err)
	store, err := address.Open()
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, store.Close()) })
	return store
}

// lead puts a record of this library into the safe of a name.
func (s *street) lead(name, params string) {
	s.Helper()
	store := s.open(params)
	rec, err := store.KV.Create(s.ctx, name, kv.Record{Signature: "us/" + rand.Text(), Value: "our address", TTL: time.Minute})
	require.NoError(s, err)
	s.Cleanup(func() { _ = store.KV.Delete(context.Background(), name, rec) })
}

// examine tells what doctor finds for a name, with each of the parameters, and
// returns the levels.
func (s *street) examine(what, name string, params ...string) []string {
	s.Helper()
	levels := []string{}
	fmt.Fprintf(&s.told, "# %s\n", what)
	for _, p := range params {
		fmt.Fprintf(&s.told, "\nelect doctor %s, parameters: %s\n", name, p)
		all := ""
		for _, f := range doctor.ExamineName(s.ctx, s.open(p), name) {
			require.Equal(s, "name "+name, f.Subject)
			fmt.Fprintf(&s.told, "%s\n", s.normal(string(f.Level)+"  "+f.Found))
			if f.Why != "" {
				fmt.Fprintf(&s.told, "      why: %s\n", s.normal(f.Why))
			}
			if f.Advice != "" {
				fmt.Fprintf(&s.told, "      do:  %s\n", s.normal(f.Advice))
			}
			all += string(f.Level) + " "
		}
		levels = append(levels, strings.TrimSpace(all))
	}
	fmt.Fprintln(&s.told)
	return levels
}

// normal takes out what differs from run to run.
func (s *street) normal(text string) string {
	text = strings.ReplaceAll(text, s.prefix, "PREFIX")
	for pattern, with := range map[string]string{
		`lease [0-9a-f]{6,}`:              "lease LEASE",
		`/[0-9a-f]{14,16}\b`:              "/LEASE",
		`ends in \S+ unless`:              "ends in TIME unless",
		`[0-9a-f]{8}(-[0-9a-f]{4,12}){4}`: "UUID",
		`node "[^"]*"`:                    `node "NODE"`,
	} {
		text = regexp.MustCompile(pattern).ReplaceAllString(text, with)
	}
	return text
}

// requireTold wants what was told to be what is in the file.
func (s *street) requireTold(file string) {
	s.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(s, os.WriteFile(path, []byte(s.told.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(s, err)
	require.Equal(s, string(want), s.told.String(), "see the difference; then, perhaps: go test ./cmd/elect/internal/doctor -update")
}
