package kvfault

import (
	"context"
	"time"

	"github.com/electkv/election/kv"
)

// A view is the store over the link. It has parts that the store may not have, and is then
// not asked for them.
type view struct{ *Link }

// Create implements [kv.Store].
func (v view) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.call(ctx, Create, name, func(ctx context.Context) (kv.Record, error) {
		return v.inner.Create(ctx, name, rec)
	})
}

// Swap implements [kv.Store].
func (v view) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return v.call(ctx, Swap, name, func(ctx context.Context) (kv.Record, error) {
		return v.inner.Swap(ctx, name, old, next)
	})
}

// Refresh implements [kv.Store].
func (v view) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.call(ctx, Refresh, name, func(ctx context.Context) (kv.Record, error) {
		return v.inner.Refresh(ctx, name, rec)
	})
}

// RefreshAll implements [kv.Batch]. To a call for many records happens what is set for
// Refresh: it is one request with one answer, which is lost as a whole.
func (v view) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	type verdict struct {
		rec kv.Record
		err error
	}
	told := make([]verdict, len(records))
	_, err := v.call(ctx, Refresh, "many", func(ctx context.Context) (kv.Record, error) {
		v.inner.(kv.Batch).RefreshAll(ctx, records, func(i int, rec kv.Record, err error) { told[i] = verdict{rec, err} })
		return kv.Record{}, nil
	})
	for i := range records {
		if err != nil { // what was told comes late, and to nobody
			tell(i, kv.Record{}, err)
			continue
		}
		tell(i, told[i].rec, told[i].err)
	}
}

// Delete implements [kv.Store].
func (v view) Delete(ctx context.Context, name string, rec kv.Record) error {
	_, err := v.call(ctx, Delete, name, func(ctx context.Context) (kv.Record, error) {
		return kv.Record{}, v.inner.Delete(ctx, name, rec)
	})
	return err
}

// Get implements [kv.Store].
func (v view) Get(ctx context.Context, name string) (kv.Record, error) {
	return v.call(ctx, Get, name, func(ctx context.Context) (kv.Record, error) {
		return v.inner.Get(ctx, name)
	})
}

// Join implements [kv.Queue].
func (v view) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.call(ctx, Join, name, func(ctx context.Context) (kv.Record, error) {
		return v.inner.(kv.Queue).Join(ctx, name, rec)
	})
}

// Stay implements [kv.Queue].
func (v view) Stay(ctx context.Context, name string, rec kv.Record) (_ kv.Record, leads bool, _ error) {
	rec, err := v.call(ctx, Stay, name, func(ctx context.Context) (place kv.Record, err error) {
		place, leads, err = v.inner.(kv.Queue).Stay(ctx, name, rec)
		return place, err
	})
	return rec, leads && err == nil, err
}

// HandOver implements [kv.HandOver].
func (v view) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	return v.call(ctx, HandOver, name, func(ctx context.Context) (kv.Record, error) {
		return v.inner.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
	})
}

// Vacate implements [kv.Vacate]. Faults of Delete strike it.
func (v view) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	return v.call(ctx, Delete, name, func(ctx context.Context) (kv.Record, error) {
		return v.inner.(kv.Vacate).Vacate(ctx, name, rec, place)
	})
}

// Members implements [kv.Roster]. Faults of Get strike it.
func (v view) Members(ctx context.Context, name string, most int) (members []kv.Held, version uint64, err error) {
	_, err = v.call(ctx, Get, name, func(ctx context.Context) (_ kv.Record, err error) {
		members, version, err = v.inner.(kv.Roster).Members(ctx, name, most)
		return kv.Record{}, err
	})
	if err != nil { // what was read comes late, and to nobody
		return nil, 0, err
	}
	return members, version, nil
}

// AwaitMembers implements [kv.Roster]. Faults of Watch strike it when it begins.
func (v view) AwaitMembers(ctx context.Context, name string, version uint64) error {
	_, err := v.call(ctx, Watch, name, func(ctx context.Context) (kv.Record, error) {
		return kv.Record{}, v.inner.(kv.Roster).AwaitMembers(ctx, name, version)
	})
	return err
}

// Lifetime implements [kv.Store]. It asks no server, so it has no faults.
func (v view) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	return v.inner.Lifetime(ttl)
}
