package paxoskv

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/kv"
)

const (
	minTTL    = 100 * time.Millisecond
	maxName   = 4 << 10
	maxRecord = 512 << 10
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

func (s *Store) gaveUp(why error, op *lease.Operation) error {
	text := ""
	if d := s.Quarantined(); d > 0 {
		text = fmt.Sprintf("; this one is in quarantine for %v more", d.Round(time.Millisecond))
	}
	if op.Heard() < s.terms.Majority() {
		for _, m := range s.Status().Members {
			if m.Trouble != nil {
				text += fmt.Sprintf("; %s: %v", m.ID, m.Trouble)
			}
		}
	}
	return fmt.Errorf("%d of %d members answered at last, where %d must%s: %w", op.Heard(), len(s.terms.Members), s.terms.Majority(), text, why)
}
