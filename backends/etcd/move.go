package etcdkv

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// longestMove is how many bytes of text a Txn moves, but for those of a single record.
const longestMove = 512 << 10

// aside is how long a batch waits at most for what is done beside it.
var aside = time.Second //nolint:gochecknoglobals // only tests change it

// A move is what becomes of a claim's lease.
type move struct {
	shared clientv3.LeaseID // the one that the record shares, or is to share; NoLease if none
	to     clientv3.LeaseID // the one that it moves to; NoLease if it stays
	again  bool             // it may have moved there, or may still
	size   int              // of its text, if it moves
}

func (m move) moves() bool { return m.to != clientv3.NoLease }

// fits reports whether a record that is to be created can move to another lease later: its text
// has its token then.
func (sf safe) fits(rec kv.Record) bool {
	rec.Token = math.MaxUint64
	return len(sf.encode(rec)) <= longestText
}

// movedTo returns the record as it is once it has moved.
func (c claim) movedTo() kv.Record {
	rec := c.Record
	rec.Lease, rec.TTL = leaseName(c.to), whole(rec.TTL)
	return rec
}

// place finds out which lease a record is to have. It reports whether its revision and its
// lease can prove everything.
func (b *batch) place(c *claim, share bool, now time.Time) bool {
	at := c.sharing.asks(c.start, c.Record, now)
	if at.lease == c.Lease {
		c.shared = c.id
	}
	if at.lease == "" && !share && !at.leave || at.lease == c.Lease && !at.leave {
		return true
	}
	var to string
	if c.size = len(c.encode(c.Record)); c.size > longestText {
		return at.lease == "" || at.lease == c.Lease
	}
	switch at.lease {
	case "", c.Lease:
		var lacking bool
		if to, lacking = c.sharing.move(c.start, c.Record, at.leave, now); lacking {
			b.lacking = append(b.lacking, whole(c.TTL))
		}
	default:
		if at.from != c.Revision || at.leave {
			return false
		}
		to, c.again = at.lease, true // nobody knows whether it has moved
	}
	if c.to, _ = leaseID(to); c.moves() { // etcd named it
		c.shared = c.to
	} else {
		c.size = 0
	}
	return true
}

// sharesOf divides claims up into those that one Txn has room for. Those that share a lease
// are together, so that each share has few.
func sharesOf(claims []claim) (shares [][]claim) {
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(a.shared, b.shared) })
	begin, bytes, ops := 0, 0, 0
	for i, c := range claims {
		each := 1
		if c.plain {
			each = 2 // it has a companion
		}
		// One operation is the read.
		if ops+each >= txnOps || bytes > 0 && bytes+c.size > longestMove {
			shares = append(shares, claims[begin:i])
			begin, bytes, ops = i, 0, 0
		}
		ops += each
		bytes += c.size
	}
	if begin < len(claims) {
		shares = append(shares, claims[begin:])
	}
	return shares
}

// movesOf returns what moves those of the claims that are to move.
func movesOf(claims []claim) (ops []clientv3.Op, _ error) {
	for _, c := range claims {
		if c.moves() {
			puts, err := c.puts(c.movedTo())
			if err != nil {
				return nil, err
			}
			ops = append(ops, puts...)
		}
	}
	return ops, nil
}

// moved takes in what has moved with the write of a revision.
func (b *batch) moved(claims []claim, revision int64) {
	for i := range claims {
		if c := &claims[i]; c.moves() {
			b.sharing.moved(c.start, c.Record, leaseName(c.to), c.Revision)
			c.Record, c.id = stored(c.movedTo(), revision), c.to
		}
	}
}

// keep has a record not move: nothing was sent, or what was sent never comes to anything. Of
// what was sent before nothing is known.
func (b *batch) keep(c *claim) {
	if c.moves() && !c.again {
		b.sharing.stays(c.start, c.Record, leaseName(c.to), c.Revision)
		c.to = clientv3.NoLease
	}
}

// left has a record that was refreshed singly leave its lease, if that is closed, and returns it
// as it is then. The caller has a good answer already, so this is not to take long.
func (s *Store) left(ctx context.Context, name string, rec kv.Record) kv.Record {
	if !s.sharing.leaves(rec.Lease, time.Now()) {
		return rec
	}
	ctx, cancel := context.WithTimeout(ctx, aside/3)
	defer cancel()
	s.refreshAll(ctx, []kv.Held{{Name: name, Record: rec, Share: true}}, true, func(_ int, got kv.Record, err error) {
		if err == nil {
			rec = got
		}
	})
	return rec
}

// tend sees to the shared leases: it has those granted that are lacking, and closes those
// that back what was left behind.
func (s *Store) tend(ctx context.Context, now time.Time, lacking []time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, aside)
	defer cancel()
	slices.Sort(lacking)
	for _, ttl := range slices.Compact(lacking) {
		if s.sharing.begin(ttl) {
			sent := boottime.Read()
			one, err := s.at("").grant(ctx, ttl)
			s.sharing.granted(ttl, one, err)
			s.sharing.renewed(one.ID, sent)
		}
	}
	for _, r := range s.sharing.silents(now, true) {
		held, err := s.at(r.key).find(ctx, r.rec)
		switch {
		case errors.Is(err, kv.ErrStale):
			s.sharing.forget(r.key, r.rec)
		case err != nil: // it is closed before long
		case held.Lease != r.lease && held.Revision != r.from:
			s.sharing.stays(r.key, r.rec, r.lease, r.from)
		default:
			s.sharing.close(r.lease)
		}
	}
}

// at returns the safe at a key, in the layout OneKey.
func (s *Store) at(key string) safe {
	return safe{client: s.client, spares: &s.spares, sharing: &s.sharing, base: key, start: key}
}
