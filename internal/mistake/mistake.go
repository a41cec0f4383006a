// Package mistake has the mistakes that others made, as views of a store that
// make the engine above them do what one with the mistake would. The tests plant
// them to see that the oracles find them. Nothing but tests imports it.
package mistake

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/electkv/election/kv"
)

// FromReceipt adds the time that a call took to the TTL that it was granted, so
// that trust is counted from the answer.
func FromReceipt(store kv.Store) kv.Store { return fromReceipt{store} }

type fromReceipt struct{ kv.Store }

// Create implements [kv.Store].
func (v fromReceipt) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sent := time.Now()
	got, err := v.Store.Create(ctx, name, rec)
	got.TTL += time.Since(sent)
	return got, err
}

// Refresh implements [kv.Store].
func (v fromReceipt) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sent := time.Now()
	got, err := v.Store.Refresh(ctx, name, rec)
	got.TTL += time.Since(sent)
	return got, err
}

// BlindRefresh takes the store's answer to a refresh for a success, whatever
// became of the key: so do the keep-alive of an etcd lease and the renewal of a
// Consul session.
func BlindRefresh(store kv.Store) kv.Store { return blindRefresh{store} }

type blindRefresh struct{ kv.Store }

// Refresh implements [kv.Store].
func (v blindRefresh) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := v.Store.Refresh(ctx, name, rec)
	if errors.Is(err, kv.ErrStale) {
		return rec, nil
	}
	return got, err
}

// BlindRelease deletes whatever record is there.
func BlindRelease(store kv.Store) kv.Store { return blindRelease{store} }

type blindRelease struct{ kv.Store }

// Delete implements [kv.Store].
func (v blindRelease) Delete(ctx context.Context, name string, _ kv.Record) error {
	rec, err := v.Get(ctx, name)
	if errors.Is(err, kv.ErrVacant) {
		return kv.ErrStale
	}
	if err != nil {
		return err
	}
	return v.Store.Delete(ctx, name, rec)
}

// BesideLine does not know that candidates wait in line: it claims the safe as where there is
// no line.
func BesideLine(store kv.Store) kv.Store { return besideLine{store} }

type besideLine struct{ kv.Store }

// Lifetime implements [kv.Store].
func (v besideLine) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	life, err := v.Store.Lifetime(ttl)
	life.Queue = false
	return life, err
}

// NewNonce signs each try of a create with a new nonce that the engine does not know, so
// that a record from a lost one belongs to no candidate.
func NewNonce(store kv.Store) kv.Store { return newNonce{store} }

type newNonce struct{ kv.Store }

// Create implements [kv.Store].
func (v newNonce) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	id := rec.Signature[:strings.LastIndexByte(rec.Signature, '/')+1]
	rec.Signature = id + rand.Text() + ".1"
	return v.Store.Create(ctx, name, rec)
}
