//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

const (
	// releaseEvery is how long a guard waits before it tries again to release a lease.
	releaseEvery = 200 * time.Millisecond
	// releaseTry is how long one try may take at most.
	releaseTry = 2 * time.Second
)

// A bequest is what a guard needs to release the lease of an elect that was killed, when
// COMMAND and all its descendants are gone. The guard gets it by its pipe: it has COMMAND's
// environment, from which the store's secrets were taken, and anybody can read its
// arguments.
type bequest struct {
	Store   string            `json:"store"`   // its URL
	Secrets map[string]string `json:"secrets"` // environment variables
	Name    string            `json:"name"`
	Record  kv.Record         `json:"record"`
}

// bequeaths returns what all terms bequeath, or nil if a guard is not to release their
// records: with --linger, and in a store where nobody could or where a record ends with
// the last process that holds it open.
func (f *runFlags) bequeaths(address *stores.Address, url string) (*bequest, error) {
	switch {
	case address.EndsWithProcess() && f.linger:
		return nil, errors.New("--linger does not work with a directory, where a lease ends with the process that holds it: use another store")
	case !address.Releasable(), f.linger:
		return nil, nil //nolint:nilnil // nothing to bequeath
	}
	b := &bequest{Store: url, Secrets: map[string]string{}}
	for _, name := range address.Secrets() {
		if value, ok := os.LookupEnv(name); ok {
			b.Secrets[name] = value
		}
	}
	return b, nil
}

// of returns what the term of a record bequeaths, for the guard.
func (b *bequest) of(name string, rec kv.Record) json.RawMessage {
	if b == nil {
		return nil
	}
	whole := *b
	rec.Value, rec.Note = "", "" // they may be long, and a delete does without them
	whole.Name, whole.Record = name, rec
	text, err := json.Marshal(whole)
	if err != nil {
		return nil // the TTL does it
	}
	return text
}

// release removes the record of an elect that was killed, if the safe still holds it. What
// elect sent before it died is conditional on that record as well, so it has no effect later.
// After an error release tries again, until the TTL has passed and the record with it.
func release(text json.RawMessage) {
	var b bequest
	if json.Unmarshal(text, &b) != nil {
		return
	}
	for name, value := range b.Secrets {
		_ = os.Setenv(name, value) // of the guard's own: nobody is left who could inherit it
	}
	address, err := stores.Parse(b.Store, os.Getenv)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.Record.TTL)
	defer cancel()
	for ctx.Err() == nil {
		switch err := b.remove(ctx, address); {
		case err == nil, errors.Is(err, kv.ErrStale), errors.Is(err, kv.ErrInvalid):
			return
		}
		time.Sleep(releaseEvery)
	}
}

// remove makes one try, with a client of its own: that of a try before may wait long until
// it connects again.
func (b *bequest) remove(ctx context.Context, address *stores.Address) error {
	store, err := address.Open()
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(ctx, min(releaseTry, b.Record.TTL/3))
	defer cancel()
	return store.KV.Delete(ctx, b.Name, b.Record)
}
