package paxoskv

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/kv"
)

const (
	minTTL    = 100 * time.Millisecond
	maxName   = lease.MaxSafe
	maxRecord = lease.MaxRecord
)

// record returns what a state says to callers.
func record(st lease.State) kv.Record {
	if st.Vacant() {
		return kv.Record{}
	}
	return kv.Record{
		Signature: st.Signature, Value: st.Value, Note: st.Note, TTL: st.TTL,
		Token: st.Tenure.Counter, Revision: st.Revision,
	}
}

// reported is what a reader is told of a sight.
func reported(s lease.Sight) (kv.Record, error) {
	if !s.Live {
		return kv.Record{}, kv.ErrVacant
	}
	return record(s.State), nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("paxoskv: a safe needs a name: %w", kv.ErrInvalid)
	case len(name) > maxName:
		return fmt.Errorf("paxoskv: %q: a name of %d bytes: want at most %d: %w", short(name), len(name), maxName, kv.ErrInvalid)
	}
	return nil
}

// checkOwn refuses to touch what no record of ours can be.
func checkOwn(name string, rec kv.Record) error {
	if err := checkName(name); err != nil {
		return err
	}
	if rec.Foreign || rec.Signature == "" {
		return fmt.Errorf("paxoskv: %q: a record without a signature is not from here: %w", short(name), kv.ErrInvalid)
	}
	return nil
}

// check refuses what no record can have.
func (s *Store) check(name string, c lease.Change) error {
	if err := checkName(name); err != nil {
		return err
	}
	size := len(c.Signature) + len(c.Value) + len(c.Note)
	switch {
	case c.Signature == "":
		return fmt.Errorf("paxoskv: %q: a record needs a signature: %w", short(name), kv.ErrInvalid)
	case size > maxRecord:
		return fmt.Errorf("paxoskv: %q: signature, value and note have %d bytes: want at most %d: %w", short(name), size, maxRecord, kv.ErrInvalid)
	case !utf8.ValidString(c.Note):
		return fmt.Errorf("paxoskv: %q: the note is no UTF-8: %w", short(name), kv.ErrInvalid)
	}
	if err := s.checkTTL(c.TTL); err != nil {
		return fmt.Errorf("paxoskv: %q: %w", short(name), err)
	}
	return nil
}

func (s *Store) checkTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > s.terms.MaxTTL {
		return fmt.Errorf("TTL %v: want %v to %v, which is the members' MaxTTL: %w", ttl, minTTL, s.terms.MaxTTL, kv.ErrInvalid)
	}
	return nil
}

// short returns a name as an error has it.
func short(name string) string {
	if len(name) > 80 {
		return name[:80] + "…"
	}
	return name
}

// gaveUp says why an operation has ended without an outcome: what each member has said at
// last, or why it has said nothing.
func (s *Store) gaveUp(why error, op *lease.Operation) error {
	troubles := s.troubles()
	heard, text := 0, []string{}
	for _, said := range op.Account() {
		switch trouble, away := troubles[string(said.Member)]; {
		case said.What != "":
			heard++
			text = append(text, fmt.Sprintf("%s %s", said.Member, said.What))
		case away:
			text = append(text, trouble)
		default:
			text = append(text, fmt.Sprintf("%s has not answered: is it in quarantine?", said.Member))
		}
	}
	if note := op.Note(); note != "" {
		text = append(text, note)
	}
	if d := s.Quarantined(); d > 0 {
		text = append(text, fmt.Sprintf("this member is in quarantine for %v more", d.Round(time.Millisecond)))
	}
	of, all := fmt.Sprintf("%d of %d members must agree", s.terms.Majority(), len(s.terms.Members)), strings.Join(text, "; ")
	if heard < s.terms.Majority() {
		return fmt.Errorf("no majority answers: %s, and %d answered; %s: %w", of, heard, all, why)
	}
	return fmt.Errorf("no majority agrees: %s; %s: %w", of, all, why)
}

// tooLate is why an operation was not begun: its context has ended.
func (s *Store) tooLate(ctx context.Context, name, what string) error {
	text := []string{what}
	for _, trouble := range s.troubles() {
		text = append(text, trouble)
	}
	slices.Sort(text[1:])
	return fmt.Errorf("paxoskv: %q: %s: %w", short(name), strings.Join(text, "; "), context.Cause(ctx))
}

// troubles says of each member that is not connected why, as far as is known.
func (s *Store) troubles() map[string]string {
	all := map[string]string{}
	for _, m := range s.Status().Members {
		if m.Trouble != nil {
			all[m.ID] = fmt.Sprintf("%s is not connected: %v", m.ID, m.Trouble)
		}
	}
	return all
}
