package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

// An elect under elect run finds there that it was not told of the store: the default
// store would be another one.
const (
	storeVariable = "ELECTION_STORE"
	withheld      = "withheld"
)

// warn says that everybody on this host can read a secret on the command line, and
// what to do about it.
func (s *settings) warn(address *stores.Address, log *slog.Logger) {
	if instead, ok := address.Exposed(); ok && s.store != "" {
		log.Warn("--store shows a secret to everybody on this host (ps): put it into the environment", "use", instead)
	}
}

// without returns an environment without some variables.
func without(env, names []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// withoutSecrets returns an environment without the secrets of a store, and with what
// says so if somebody named the store.
func withoutSecrets(env []string, address *stores.Address, named bool) []string {
	kept := without(env, address.Secrets())
	if named {
		kept = append(without(kept, []string{storeVariable}), storeVariable+"="+withheld)
	}
	return kept
}
