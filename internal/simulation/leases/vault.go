package leases

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// A vault is a model of a store that has leases, which keep any number of records alive.
type vault struct {
	mu      sync.Mutex
	random  *rand.Rand
	count   uint64
	leases  map[string]time.Time // when they are over
	records map[string]kv.Record
	changed chan struct{} // closed with the next change
}

func (v *vault) get(name string) (kv.Record, error) {
	rec, ok := v.records[name]
	if !ok || !time.Now().Before(v.leases[rec.Lease]) {
		delete(v.records, name)
		return kv.Record{}, kv.ErrVacant
	}
	return rec, nil
}

// put writes a record if its lease lives.
func (v *vault) put(name string, rec kv.Record) (kv.Record, error) {
	if !time.Now().Before(v.leases[rec.Lease]) {
		return kv.Record{}, errFaded
	}
	v.count++
	rec.Revision = v.count
	if rec.Token == 0 {
		rec.Token = v.count
	}
	rec.Shared = false
	v.records[name] = rec
	close(v.changed)
	v.changed = make(chan struct{})
	return rec, nil
}

var errFaded = errors.New("the lease is over")

// A sharer is what one process has of a vault: its records share a lease, by the rules of
// decision 51 in a small form. The bug, if there is one, is what it does wrong.
type sharer struct {
	*vault
	bug string

	own   sync.Mutex
	open  string                     // the lease that takes more records
	kept  time.Time                  // when the last request was sent that has kept it alive
	asked map[string]time.Time       // when records on it were last refreshed, by name
	may   map[string]map[string]bool // leases that may back a record, by signature
	deaf  time.Time                  // keep-alives are lost until then
}

const (
	trustsTheTxn    = "trust from the Txn alone"
	forgetsTheAge   = "trust in all of a lease's TTL, though it was kept alive some time ago"
	forgetsOrphans  = "a forgotten orphan"
	leaseTTL        = 3 * time.Second
	mostLeaseDelays = leaseTTL / 50
)

// send has something carried out by the vault: at once, too late, or never; and the answer may
// be lost.
func (s *sharer) send(ctx context.Context, keeps bool, do func() error) error {
	s.mu.Lock()
	dice, delay := s.random.IntN(100), time.Duration(s.random.Int64N(int64(mostLeaseDelays)))
	if keeps && s.random.IntN(400) == 0 {
		s.deaf = time.Now().Add(leaseTTL * 3 / 2)
	}
	lost := dice < 3 || keeps && time.Now().Before(s.deaf)
	s.mu.Unlock()
	answer := make(chan error, 1)
	late := dice >= 3 && dice < 7
	if late {
		delay *= 60
	}
	if !lost {
		time.AfterFunc(delay+1, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if err := do(); !late && dice < 97 {
				answer <- err
			}
		})
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// keep keeps a lease alive.
func (s *sharer) keep(ctx context.Context, lease string) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTTL/4)
	defer cancel()
	sent := time.Now()
	err := s.send(ctx, true, func() error {
		if !time.Now().Before(s.leases[lease]) {
			return errFaded
		}
		s.leases[lease] = time.Now().Add(leaseTTL)
		return nil
	})
	if errors.Is(err, errFaded) {
		s.close(lease)
	}
	if s.bug == trustsTheTxn {
		return nil
	}
	if err == nil {
		s.own.Lock()
		defer s.own.Unlock()
		if s.open == lease && sent.After(s.kept) {
			s.kept = sent
		}
	}
	return err
}

func (s *sharer) close(lease string) {
	s.own.Lock()
	defer s.own.Unlock()
	if s.open == lease {
		s.open, s.asked = "", map[string]time.Time{}
	}
}

// lease returns one that takes more records, and for how long it is known to live from now on: by
// a request that begins now, or one that was sent lately.
func (s *sharer) lease(ctx context.Context, lately time.Duration) (string, time.Duration, error) {
	s.own.Lock()
	open, age := s.open, time.Since(s.kept)
	s.own.Unlock()
	if open != "" {
		if age <= lately {
			return open, leaseTTL - age, nil
		}
		return open, leaseTTL, s.keep(ctx, open)
	}
	sent := time.Now()
	var fresh string
	err := s.send(ctx, false, func() error {
		s.count++
		fresh = fmt.Sprint("lease ", s.count)
		s.leases[fresh] = time.Now().Add(leaseTTL)
		return nil
	})
	if err != nil {
		return "", 0, err
	}
	s.own.Lock()
	defer s.own.Unlock()
	s.open, s.kept, s.asked = fresh, sent, map[string]time.Time{}
	return fresh, leaseTTL, nil
}

// Create implements [kv.Store].
func (s *sharer) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	lately := leaseTTL / 8
	if s.bug == forgetsTheAge {
		lately = leaseTTL * 3 / 4
	}
	lease, left, err := s.lease(ctx, lately)
	if err != nil {
		return kv.Record{}, err
	}
	if rec.Lease = lease; s.bug != forgetsTheAge {
		rec.TTL = left
	}
	var got kv.Record
	err = s.send(ctx, false, func() (err error) {
		if _, err := s.get(name); err == nil {
			return kv.ErrHeld
		}
		got, err = s.put(name, rec)
		return err
	})
	switch {
	case err == nil:
		s.backs(name, got, rec.Lease)
		return got, nil
	case !errors.Is(err, kv.ErrHeld) && s.bug != forgetsOrphans:
		s.close(rec.Lease)
	}
	return kv.Record{}, err
}

// backs takes in that a lease backs a record, or may.
func (s *sharer) backs(name string, rec kv.Record, leases ...string) {
	s.own.Lock()
	defer s.own.Unlock()
	s.may[rec.Signature] = map[string]bool{}
	for _, lease := range leases {
		s.may[rec.Signature][lease] = true
		if lease == s.open {
			s.asked[name] = time.Now()
		}
	}
}

// Refresh implements [kv.Store]: it keeps alive what may back the record, and looks at it. A
// record whose lease is closed moves. Until the answer is known, both leases may back it.
func (s *sharer) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.own.Lock()
	may := slices.Sorted(maps.Keys(s.may[rec.Signature]))
	if len(may) == 0 { // a late create has brought it in
		may = []string{rec.Lease}
	}
	for other, at := range s.asked { // what was left behind
		if time.Since(at) > leaseTTL*5/4 && other != name && s.bug != forgetsOrphans {
			s.open, s.asked = "", map[string]time.Time{}
		}
	}
	open := s.open
	s.own.Unlock()
	for _, lease := range may {
		if err := s.keep(ctx, lease); err != nil && !errors.Is(err, errFaded) {
			return kv.Record{}, err
		}
	}
	var got kv.Record
	if err := s.send(ctx, false, func() (err error) { got, err = s.owned(name, rec); return err }); err != nil {
		return kv.Record{}, err
	}
	got.TTL = leaseTTL
	if got.Lease == open && len(may) == 1 {
		s.backs(name, got, open)
		return got, nil
	}
	to, _, err := s.lease(ctx, 0)
	if err != nil || to == got.Lease {
		return got, nil //nolint:nilerr // it has a good answer already
	}
	s.backs(name, got, append(may, to)...)
	moved := got
	moved.Lease = to
	from, at := got.Revision, got
	if err := s.send(ctx, false, func() (err error) {
		if at, err = s.owned(name, rec); err == nil && at.Revision == from {
			at, err = s.put(name, moved)
		}
		at.TTL = leaseTTL
		return err
	}); err != nil {
		return got, nil //nolint:nilerr // likewise
	}
	s.backs(name, at, at.Lease)
	return at, nil
}

func (s *sharer) owned(name string, rec kv.Record) (kv.Record, error) {
	now, err := s.get(name)
	if err != nil || !now.Owns(rec) {
		return kv.Record{}, kv.ErrStale
	}
	return now, nil
}

// RefreshAll implements [kv.Batch].
func (s *sharer) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	var all sync.WaitGroup
	for i, r := range records {
		all.Go(func() {
			rec, err := s.Refresh(ctx, r.Name, r.Record)
			tell(i, rec, err)
		})
	}
	all.Wait()
}

// Swap implements [kv.Store]: nothing is published here, nor handed over.
func (s *sharer) Swap(context.Context, string, kv.Record, kv.Record) (kv.Record, error) {
	return kv.Record{}, errors.ErrUnsupported
}

// Delete implements [kv.Store].
func (s *sharer) Delete(ctx context.Context, name string, rec kv.Record) error {
	err := s.send(ctx, false, func() error {
		_, err := s.owned(name, rec)
		if err == nil {
			delete(s.records, name)
			close(s.changed)
			s.changed = make(chan struct{})
		}
		return err
	})
	if err == nil || errors.Is(err, kv.ErrStale) {
		s.own.Lock()
		defer s.own.Unlock()
		delete(s.asked, name)
	}
	return err
}

// Get implements [kv.Store].
func (s *sharer) Get(ctx context.Context, name string) (kv.Record, error) {
	var got kv.Record
	if err := s.send(ctx, false, func() (err error) { got, err = s.get(name); return err }); err != nil {
		return kv.Record{}, err // got may still be written
	}
	return got, nil
}

// Watch implements [kv.Store]; it loses nothing.
func (s *sharer) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		var last kv.Record
		for first := true; ; first = false {
			s.mu.Lock()
			rec, err := s.get(name)
			left, changed := max(time.Until(s.leases[rec.Lease]), time.Millisecond), s.changed
			s.mu.Unlock()
			if (first || rec != last) && !yield(rec, err) {
				return
			}
			last = rec
			if err != nil {
				left = time.Hour
			}
			timer := time.NewTimer(left)
			select {
			case <-changed:
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				yield(kv.Record{}, context.Cause(ctx))
				return
			}
			timer.Stop()
		}
	}
}

// Lifetime implements [kv.Store].
func (s *sharer) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	return kv.Lifetime{Min: ttl, Max: ttl}, nil
}
