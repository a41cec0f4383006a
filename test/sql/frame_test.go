package sqlkv_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/kv"
)

// frameVariable has this test binary, started anew, use a store in the database that
// sourceVariable names: "hold" holds the safe for as long as it can, "claim" waits for it, "try"
// asks once, and "heir" holds a safe of its own until it is given the other.
const (
	frameVariable  = "ELECTION_TEST_SQLITE_FRAME"
	sourceVariable = "ELECTION_TEST_SQLITE_SOURCE"
)

// frameTTL is long enough that a busy machine does not keep a leader from a refresh.
const frameTTL = 10 * time.Second

// onceTTL is the TTL of those that create a record and end.
const onceTTL = frameTTL / 2

func playInFrame(role string) error {
	db, err := sql.Open("sqlite", os.Getenv(sourceVariable))
	if err != nil {
		return err
	}
	store := sqlkv.New(db, sqlkv.SQLite, &sqlkv.Options{Poll: 100 * time.Millisecond})
	ctx := context.Background()
	rec := kv.Record{Signature: fmt.Sprintf("%s %d", role, time.Now().UnixNano()), TTL: frameTTL}
	switch role {
	case "try", "last":
		rec.TTL, rec.Lasting = onceTTL, role == "last"
		rec, err = store.Create(ctx, "n", rec)
		if errors.Is(err, kv.ErrHeld) {
			fmt.Println("refused:", err)
			return nil
		}
		fmt.Println("elected", rec.Token)
		return err
	case "hold":
		return holdFrame(ctx, store, "n", rec)
	case "heir":
		return waitAsHeir(ctx, store, rec)
	default:
		for _, err := range store.Watch(ctx, "n") {
			if errors.Is(err, kv.ErrVacant) {
				err = holdFrame(ctx, store, "n", rec)
				if !errors.Is(err, kv.ErrHeld) {
					return err
				}
			} else if err != nil {
				return err
			}
		}
		return nil
	}
}

// holdFrame creates a record and refreshes it until it cannot.
func holdFrame(ctx context.Context, store *sqlkv.Store, name string, rec kv.Record) error {
	rec, err := store.Create(ctx, name, rec)
	if err != nil {
		return err
	}
	fmt.Println("elected", rec.Token)
	return refreshFrame(ctx, store, name, rec)
}

func refreshFrame(ctx context.Context, store *sqlkv.Store, name string, rec kv.Record) error {
	for {
		time.Sleep(frameTTL / 4)
		if _, err := store.Refresh(ctx, name, rec); err != nil {
			return err
		}
	}
}

// waitAsHeir holds its own safe, and keeps the other once that has its signature.
func waitAsHeir(ctx context.Context, store *sqlkv.Store, rec kv.Record) error {
	own, err := store.Create(ctx, "heir", rec)
	if err != nil {
		return err
	}
	fmt.Println("elected", own.Token)
	for {
		got, err := store.Get(ctx, "n")
		if err == nil && got.Signature == own.Signature {
			if _, err := store.Refresh(ctx, "n", got); err != nil {
				return err
			}
			fmt.Println("inherited", got.Token)
			return refreshFrame(ctx, store, "n", got)
		}
		if err != nil && !errors.Is(err, kv.ErrVacant) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
