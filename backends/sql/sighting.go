package sqlkv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// A record by another clock is judged as package observer judges: whoever has seen it
// unchanged for its TTL, on its own clock, may replace exactly what it saw. That
// another boot or time namespace wrote it proves nothing of its owner, which may run
// beside us in a container.
//
// What was seen is in the store's memory, and a create that is refused writes it down
// as well, for programs that ask once and end: the next one that asks on the same clock
// gets in. Readers write nothing.

// mostSightings is how many clocks a safe has sightings of. A container may have a boot id
// of its own each time that it is started, and never ask twice on one clock.
const mostSightings = 100

// observe sets how long a record has left that another clock has given its expiry.
func (t *table) observe(name string, r *row) {
	if t.seen == nil {
		return
	}
	if r.alien == "" || !r.signed() {
		t.seen.Forget(name)
		return
	}
	left := t.seen.Left(name, r.sighted())
	r.left = sql.NullInt64{Int64: int64((left + time.Microsecond - 1) / time.Microsecond), Valid: true}
}

// sighted returns the record whose revision is another after each refresh.
func (r *row) sighted() kv.Record {
	rec := kv.Record{
		Signature: string(r.signature.V), Token: uint64(r.token.Int64),
		TTL: time.Duration(r.ttl.Int64) * time.Microsecond,
	}
	alien := *r
	alien.note = append(append([]byte(nil), r.alien+"\x00"...), r.note...)
	rec.Revision = alien.fingerprint()
	return rec
}

// outlive puts a record into a safe that was refused, if what is in the way is by
// another clock and was seen unchanged for its TTL.
func (t *table) outlive(ctx context.Context, name string, rec kv.Record, ttl int64) (kv.Record, error) {
	r, err := t.look(ctx, name)
	if err != nil {
		return kv.Record{}, err
	}
	if r.alien == "" || !r.signed() {
		return kv.Record{}, kv.ErrHeld
	}
	if !r.faded() {
		left, err := t.sight(ctx, name, &r)
		if err != nil { // nothing was claimed
			return kv.Record{}, fmt.Errorf("%w: its record is by the clock of another boot or time namespace, and since when it was seen cannot be written down: %w", kv.ErrHeld, err)
		}
		if left > 0 {
			return kv.Record{}, fmt.Errorf("%w: its record is by the clock of another boot or time namespace, and is vacant if it stays unchanged for %v more", kv.ErrHeld, left.Round(time.Millisecond))
		}
	}
	n, err := t.change(ctx, t.book.outlive, name, values{
		"signature": r.signature.V, "token": r.token.Int64, "revision": r.revision.Int64, "alien": r.alien,
		"next": []byte(rec.Signature), "value": []byte(rec.Value), "note": []byte(rec.Note), "ttl": ttl, "lasting": rec.Lasting,
	}, kv.ErrHeld)
	if err != nil {
		return kv.Record{}, err
	}
	// The record is there. A sighting that stays is of a state that never comes back.
	_, _ = t.exec(ctx, t.book.unsight, sightingsOf(name))
	return written(rec, n, n, ttl), nil
}

// sight writes down what was seen, and returns how long it will be before the record
// can be judged by that.
func (t *table) sight(ctx context.Context, name string, r *row) (time.Duration, error) {
	here, err := boottime.Here()
	if err != nil {
		return 0, err
	}
	seen := fmt.Appendf(nil, "%d %d %s\x00%s", r.token.Int64, r.revision.Int64, r.alien, r.signature.V)
	v := sightingsOf(name)
	v["sighting"], v["seen"], v["others"] = []byte(name+"\x00"+here.String()), seen, mostSightings-1
	var since int64
	found, err := t.query(ctx, t.book.sight, v, &since)
	if err == nil && !found {
		err = errors.New("the database does not show what it was told to keep")
	}
	if err == nil {
		_, err = t.exec(ctx, t.book.sweep, v)
	}
	elapsed := boottime.Now() - time.Duration(since)
	return time.Duration(r.ttl.Int64)*time.Microsecond - elapsed, err
}

// sightingsOf returns between which names the sightings of a safe are.
func sightingsOf(name string) values {
	return values{"sightings": []byte(name + "\x00"), "sightingsend": []byte(name + "\x01")}
}
