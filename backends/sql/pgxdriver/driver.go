// Package pgxdriver has a sqlkv store in PostgreSQL hear of changes at once, over pgx.
//
//	db, err := sql.Open("pgx", "postgres://…")
//	store := sqlkv.New(db, sqlkv.PostgreSQL, &sqlkv.Options{Driver: pgxdriver.Driver{}})
//
// It is a package of its own so that programs that use another database do not link
// pgx.
package pgxdriver

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	sqlkv "github.com/electkv/election/backends/sql"
)

const (
	// parting is how long a connection's end is waited for.
	parting = time.Second

	// silence is after how long without news the connection is tried.
	silence = 5 * time.Second
)

// A Driver is for pools of github.com/jackc/pgx/v5/stdlib. A driver that is wrapped, for
// tracing say, is not known as pgx's: watches look by themselves then.
type Driver struct{}

var _ sqlkv.Driver = Driver{}

// First has nothing prepared on a connection that a pooler may take away.
func (Driver) First(db *sql.DB) []any {
	if _, ok := db.Driver().(*stdlib.Driver); ok {
		return []any{pgx.QueryExecModeExec}
	}
	return nil
}

// Listen makes a connection beside the pool and hands on what it is told by NOTIFY.
func (d Driver) Listen(ctx context.Context, db *sql.DB, channel string, on func(), hear func(string)) error {
	if d.First(db) == nil {
		return sqlkv.ErrUnheard
	}
	conn, err := connect(ctx, db)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), parting)
		defer cancel()
		_ = conn.Close(ctx) // there is nothing that it could have to say
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	on()
	for {
		told, err := next(ctx, conn)
		if err != nil {
			return err
		}
		if told != "" {
			hear(told)
		}
	}
}

// next returns the name in the next notice, or nothing if none has come for a
// while and the connection is well.
func next(ctx context.Context, conn *pgx.Conn) (string, error) {
	wait, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	notice, err := conn.WaitForNotification(wait)
	if err == nil {
		return notice.Payload, nil
	}
	if ctx.Err() != nil || wait.Err() == nil || conn.IsClosed() {
		return "", err
	}
	ping, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	return "", conn.Ping(ping)
}

// connect makes a connection like those of the pool, beside it. Through a proxy
// that hands a server's connection from one client to the next, nothing can be
// heard, and others would hear what is meant for us. Such a proxy gives its
// clients another key than the server's, and with it another process id.
func connect(ctx context.Context, db *sql.DB) (*pgx.Conn, error) {
	config, err := configOf(ctx, db)
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	config.OnNotification = nil // it would hand them to the connection asked
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var pid uint32
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	if err == nil && pid != conn.PgConn().PID() {
		err = sqlkv.ErrUnheard
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), parting)
		defer cancel()
		_ = conn.Close(ctx) // the error before is the one to tell
		return nil, err
	}
	return conn, nil
}

// configOf asks the pool how it connects.
func configOf(ctx context.Context, db *sql.DB) (*pgx.ConnConfig, error) {
	lent, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var config *pgx.ConnConfig
	err = lent.Raw(func(conn any) error {
		c, ok := conn.(interface{ Conn() *pgx.Conn })
		if !ok {
			return sqlkv.ErrUnheard
		}
		config = c.Conn().Config()
		return nil
	})
	return config, errors.Join(err, lent.Close())
}
