package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/electkv/election/kv"
)

const (
	readingPause = time.Second           // before a reader looks again for a table
	youngPause   = 20 * time.Millisecond // before it looks again for a file that is being made
)

// A reading store makes no table. Where there is none nobody leads. It hides [kv.Board], so
// each safe that is watched costs a goroutine, but no more requests.
type reading struct {
	kv.Store
	db *Database
}

// Get implements [kv.Store].
func (r *reading) Get(ctx context.Context, name string) (kv.Record, error) {
	for begun := time.Now(); ; {
		rec, err := r.Store.Get(ctx, name)
		err = r.explain(err)
		if !isYoung(err) || time.Since(begun) > readingPause || !sleep(ctx, youngPause) {
			return rec, err
		}
	}
}

// A young error may say only that somebody is just making the file, and those beside
// it: this user may read it.
type young struct{ error }

func (y young) Unwrap() error { return y.error }

func isYoung(err error) bool {
	_, ok := errors.AsType[young](err)
	return ok
}

// sleep reports whether ctx still goes on afterwards.
func sleep(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Watch implements [kv.Store].
func (r *reading) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		told := false // that there is none
		for {
			err := r.follow(ctx, name, yield, &told)
			if !errors.Is(err, kv.ErrVacant) {
				if err != nil {
					yield(kv.Record{}, err)
				}
				return
			}
			if !told && !yield(kv.Record{}, err) {
				return
			}
			told = true
			if !sleep(ctx, readingPause) {
				yield(kv.Record{}, context.Cause(ctx))
				return
			}
		}
	}
}

// follow yields what the table holds, and returns [kv.ErrVacant] if there is none, and
// nil if the reader has seen enough.
func (r *reading) follow(ctx context.Context, name string, yield func(kv.Record, error) bool, told *bool) error {
	for rec, err := range r.Store.Watch(ctx, name) {
		if err != nil && !errors.Is(err, kv.ErrVacant) {
			if err = r.explain(err); isYoung(err) {
				_, err = r.Get(ctx, name)
			}
			if err == nil {
				return kv.ErrVacant // as it was before: what is there now comes with the next look
			}
			return err
		}
		*told = false
		if !yield(rec, err) {
			return nil
		}
	}
	return nil
}

// explain returns [kv.ErrVacant] for an error that says that there is no table, or no
// file that it could be in, and adds what would be right to others.
func (r *reading) explain(err error) error {
	switch r.db.dialect.refusal(err) {
	case noTable:
		return kv.ErrVacant
	case noFile:
		file, why := os.Open(r.db.file)
		if errors.Is(why, fs.ErrNotExist) {
			return kv.ErrVacant
		}
		err = fmt.Errorf("%w; this user needs permission to read the file and, if there is a write-ahead log, the files beside it whose names end in -wal and -shm", err)
		if why != nil {
			return err
		}
		_ = file.Close()
		return young{err}
	}
	return err
}
