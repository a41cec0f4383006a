package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/electkv/election/kv"
)

const (
	usualTTL   = 15 * time.Second
	usualGrace = 5 * time.Second
	longestTTL = time.Hour // that is looked for; a store may take longer ones

	usualTTLText = "15s, or the nearest that fits the store"
)

// said puts what the help says of a default that depends on others.
func said(flags *pflag.FlagSet, flag, text string) { flags.Lookup(flag).DefValue = text }

// taken returns what tells whether a store takes a TTL.
func taken(store kv.Store) func(time.Duration) bool {
	return func(ttl time.Duration) bool {
		_, err := store.Lifetime(ttl)
		return err == nil
	}
}

// leastTTL returns the shortest TTL, in steps of a tenth of a second from least on,
// that takes accepts. If there is none, it is least.
func leastTTL(least time.Duration, takes func(time.Duration) bool) time.Duration {
	for ttl := least; ttl <= longestTTL; ttl += 100 * time.Millisecond {
		if takes(ttl) {
			return ttl
		}
	}
	return least
}

// nearestTTL returns the TTL nearest to wanted, in steps of a second, that takes
// accepts. If there is none, it is wanted.
func nearestTTL(wanted time.Duration, takes func(time.Duration) bool) time.Duration {
	for off := time.Duration(0); off <= longestTTL; off += time.Second {
		switch {
		case takes(wanted + off):
			return wanted + off
		case off < wanted && takes(wanted-off):
			return wanted - off
		}
	}
	return wanted
}

// reserve is what it takes from SIGKILL to the last process gone, and what
// clocks of different rates take.
func reserve(ttl time.Duration) time.Duration {
	return max(ttl/10, ttl/50+200*time.Millisecond)
}

// spare is the longest grace that a TTL has room for: at least a third of it
// must be left to lead.
func spare(ttl time.Duration) time.Duration {
	return ttl - ttl/3 - reserve(ttl)
}

// graceFor is the grace of those who name none: a third of the TTL, but not more
// than the usual one, nor than there is room for.
func graceFor(ttl time.Duration) time.Duration {
	return max(0, min(usualGrace, ttl/3, spare(ttl))).Truncate(time.Millisecond)
}

// ttlFor returns the shortest TTL, in tenths of a second, with room for a grace.
func ttlFor(grace time.Duration) time.Duration {
	ttl := (grace + grace/2).Truncate(100 * time.Millisecond)
	for spare(ttl) < grace {
		ttl += 100 * time.Millisecond
	}
	return ttl
}
