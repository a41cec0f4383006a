package group

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/electkv/election/internal/invitation"
	"github.com/electkv/election/internal/wire"
)

// A roster is what [Member.SetRoster] was told last.
type roster struct {
	listed []string // in the form of wire.Members, this process among them; nil if SetPeers was called since
	odd    []string // what is no address, cut short; sorted
}

// SetRoster changes the processes that may be in a group to those that a roster lists: that of an
// election ([election.Members]), or any other register that processes enter by themselves. This process is one
// of them, listed or not. Call it with all addresses, whenever they may have changed.
//
// It is [Member.SetPeers] for lists that nobody has checked, and from which a process that works
// may be missing for a while:
//
//   - A member of this process's group that is not listed any more stays until the group has lost it. So
//     a roster says which processes to look for, and the group says whether they are there.
//   - An address that is listed several times counts once. An entry that is not an address is skipped,
//     and logged when it is new.
//   - More than 64 with those members are an error, and the peers stay as they were. When the group has lost
//     some, they are tried again.
//
// While the roster cannot be read, do not call it: the peers stay as they are.
//
// [election.Members]: https://pkg.go.dev/github.com/electkv/election#Members
func (m *Member) SetRoster(addrs []string) error {
	listed, odd := sift(append(slices.Clone(addrs), m.self))
	m.mu.Lock()
	fresh := slices.DeleteFunc(slices.Clone(odd), func(a string) bool { return has(m.roster.odd, a) })
	m.roster = roster{listed, odd}
	effects, err := m.heed()
	m.mu.Unlock()
	m.carryOut(effects)
	if len(fresh) > 0 {
		m.log.LogAttrs(context.Background(), slog.LevelWarn, "the roster lists what is no address, which is skipped", slog.String("event", "roster_no_address"), slog.String("first", fresh[0]), slog.Int("skipped", len(odd)))
	}
	if err != nil {
		return fmt.Errorf("group: roster: %w; the peers stay as they were", err)
	}
	return nil
}

// heed has the peers be those that the roster lists, and those that are in the group with this process.
// While it is in none, it does not know who will be in the next, and forgets nobody. The mutex is held.
func (m *Member) heed() ([]invitation.Effect, error) {
	all := slices.Clone(m.roster.listed)
	for _, p := range m.peers {
		if m.group.Number.IsZero() || m.group.Has(invitation.ID(p)) {
			all = append(all, p)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if err := (invitation.Config{Self: invitation.ID(m.self)}).CheckPeers(ids(all)); err != nil {
		return nil, err
	}
	return m.know(all)
}

// outgrow forgets the peers that a roster does not list, and that are not in the group which this
// process has just entered. The mutex is held.
func (m *Member) outgrow() []invitation.Effect {
	if m.roster.listed == nil || m.group.Number.IsZero() {
		return nil
	}
	effects, _ := m.heed() // SetRoster has returned what is wrong with the roster
	return effects
}

// sift returns the addresses in the form of wire.Members, each once, and the texts that are none.
func sift(addrs []string) (good, odd []string) {
	const enough = 100 // bytes, to tell one from another
	for _, a := range addrs {
		if m, err := wire.Member(a); err == nil {
			good = append(good, m)
		} else {
			odd = append(odd, strings.Clone(a[:min(len(a), enough)]))
		}
	}
	slices.Sort(good)
	slices.Sort(odd)
	return slices.Compact(good), slices.Compact(odd)
}

// has reports whether sorted texts have one.
func has(texts []string, text string) bool {
	_, ok := slices.BinarySearch(texts, text)
	return ok
}
