package sqlkv

import (
	"context"
	"database/sql"
	"errors"
)

// A Driver does what database/sql has no words for, with one driver of PostgreSQL:
// package pgxdriver has it for pgx. Its methods may be called at once.
type Driver interface {
	// First returns what the pool's driver is given before the arguments of each
	// statement, so that nothing is prepared. It is nil if the pool's driver is
	// another one.
	First(db *sql.DB) []any

	// Listen listens on a channel, on one connection beside the pool that is made as
	// the pool makes its own. It calls on once it listens, and hear with each notice,
	// and returns when ctx ends, when the connection is lost, or, with
	// [ErrUnheard], when nothing can ever be heard there.
	Listen(ctx context.Context, db *sql.DB, channel string, on func(), hear func(notice string)) error
}

// ErrUnheard means that a [Driver] has nothing to listen to.
var ErrUnheard = errors.New("sqlkv: the server does not tell of changes here")
