package sqlkv_test

import (
	"testing"
	"time"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/observer/observertest"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// ttl is short, since the cases mostly wait.
const ttl = 500 * time.Millisecond

func TestPostgreSQLKeepsTheContract(t *testing.T) {
	p := inPostgres(t, testenv.Postgres(t))
	b := p.backend()
	pool := p.open(t, "") // the server takes long to begin a connection
	b.Open = func(testing.TB) kv.Store { return sqlkv.New(pool, p.dialect, p.opts()) }
	kvtest.Run(t, b)
}

func TestMariaDBKeepsTheContract(t *testing.T) {
	kvtest.Run(t, inMariaDB(t, testenv.MariaDB(t)).backend())
}

// Each refresh is told to all who watch, so they are not to come too often.
func TestWithObserversPostgreSQLKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	b := inPostgres(t, testenv.Postgres(t)).observedBackend()
	b.TTL = 2 * ttl
	kvtest.Run(t, b)
}

func TestWithObserversMariaDBKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, inMariaDB(t, testenv.MariaDB(t)).observedBackend())
}

func TestObserversJudge(t *testing.T) {
	for _, p := range []*place{inPostgres(t, testenv.Postgres(t)), inMariaDB(t, testenv.MariaDB(t)), inSQLite(t)} {
		t.Run(p.dialect.String(), func(t *testing.T) {
			observertest.Run(t, func(t testing.TB) kv.Store { return p.observed(t) })
		})
	}
}

func (p *place) backend() kvtest.Backend {
	return kvtest.Backend{
		Open: func(t testing.TB) kv.Store { return p.store(t) },
		TTL:  ttl, Put: p.put, Remove: p.remove, Requests: p.sent.Load,
	}
}

func (p *place) observedBackend() kvtest.Backend {
	b := p.backend()
	b.Open = func(t testing.TB) kv.Store { return p.observed(t) }
	return b
}
