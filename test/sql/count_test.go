package sqlkv_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// requests counts the statements that clients send.
type requests struct{ atomic.Int64 }

func (r *requests) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.Add(1)
	return ctx
}

func (r *requests) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// count returns the connector, from now on counted.
func (r *requests) count(c driver.Connector) driver.Connector { return counter{c, r} }

type counter struct {
	driver.Connector
	sent *requests
}

// Driver is not the one within, as with others that wrap one.
func (c counter) Driver() driver.Driver { return wrapping{c.Connector.Driver()} }

type wrapping struct{ driver.Driver }

func (c counter) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return counted{conn.(connection), c.sent}, nil
}

// connection is what both drivers' connections can do.
type connection interface {
	driver.Conn
	driver.Pinger
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.SessionResetter
}

type counted struct {
	connection
	sent *requests
}

// A driver that has to prepare a statement first says so, and is asked again.
func (c counted) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.connection.ExecContext(ctx, query, args)
	if !errors.Is(err, driver.ErrSkip) {
		c.sent.Add(1)
	}
	return result, err
}

func (c counted) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.connection.QueryContext(ctx, query, args)
	if !errors.Is(err, driver.ErrSkip) {
		c.sent.Add(1)
	}
	return rows, err
}

func (c counted) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.sent.Add(1)
	return c.connection.PrepareContext(ctx, query)
}

func (c counted) IsValid() bool {
	v, ok := c.connection.(driver.Validator)
	return !ok || v.IsValid()
}

func (c counted) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.connection.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// dialer is the connector of a driver that has none.
type dialer struct {
	driver driver.Driver
	source string
}

func (d dialer) Connect(context.Context) (driver.Conn, error) { return d.driver.Open(d.source) }
func (d dialer) Driver() driver.Driver                        { return d.driver }
