package sqlkv

import (
	"context"
	"database/sql"
	"errors"
)

// A Driver does what database/sql has no functions for, with one driver of PostgreSQL.
// Package pgxdriver has one for pgx. Its methods may be called concurrently.
type Driver interface {
	// First returns what this package passes to the pool's driver before the arguments
	// of each statement, so that nothing is prepared. It is nil if the pool has another
	// driver.
	First(db *sql.DB) []any

	// Listen listens on a channel, on one connection beside the pool, which it makes as
	// the pool makes its own. It calls on once it listens, and hear with each notice.
	// It returns when ctx ends, when the connection is lost, or, with [ErrUnheard],
	// when nothing can ever be heard there.
	Listen(ctx context.Context, db *sql.DB, channel string, on func(), hear func(notice string)) error
}

// ErrUnheard means that a [Driver] has nothing to listen to.
var ErrUnheard = errors.New("sqlkv: the server does not tell of changes here")
