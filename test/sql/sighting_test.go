package sqlkv_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// alien returns a safe whose record is by another clock.
func (p *place) alien(t testing.TB, store kv.Store, d time.Duration) (name string) {
	t.Helper()
	name = named()
	_, err := store.Create(within(t, patience), name, mortal(d))
	require.NoError(t, err)
	p.do(t, "UPDATE election SET boot = 'another' WHERE name = ?", name)
	return name
}

// sighted has that many clocks see what was seen last of the safe, one second after the
// other, as containers that are started once.
func (p *place) sighted(t testing.TB, name string, clocks int) {
	t.Helper()
	for i := range clocks {
		p.do(t, "INSERT INTO election (name, value, expires, updated) SELECT ?, value, expires, ? FROM election WHERE typeof(name) = 'blob' AND name >= ? ORDER BY name LIMIT 1",
			fmt.Appendf(nil, "%s\x00clock %03d", name, i), time.Date(2020, 1, 1, 0, 0, i, 0, time.UTC).Format("2006-01-02T15:04:05.000000Z"), []byte(name+"\x00"))
	}
}

// sightings returns what is written down of a safe, without the safe's name.
func (p *place) sightings(t testing.TB, name string) (clocks []string) {
	t.Helper()
	rows, err := p.hand.QueryContext(within(t, patience), "SELECT name FROM election WHERE name >= ? AND name < ? ORDER BY name", []byte(name+"\x00"), []byte(name+"\x01"))
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var clock []byte
		require.NoError(t, rows.Scan(&clock))
		clocks = append(clocks, string(clock[len(name)+1:]))
	}
	require.NoError(t, rows.Err())
	return clocks
}

// TestSightingsDoNotPileUp has programs ask once, each in a new container.
func TestSightingsDoNotPileUp(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	store := p.store(t)
	refused := func(name string) {
		t.Helper()
		_, err := store.Create(within(t, patience), name, signed("v"))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.ErrorContains(t, err, "another boot")
	}
	other := p.alien(t, store, time.Minute)
	refused(other)
	p.sighted(t, other, 30)
	name := p.alien(t, store, time.Minute)
	refused(name)
	own := p.sightings(t, name)
	require.Len(t, own, 1)

	p.sighted(t, name, 300)
	refused(name)
	clocks := p.sightings(t, name)
	require.Len(t, clocks, 100)
	require.Contains(t, clocks, own[0])
	require.Contains(t, clocks, "clock 299")
	require.NotContains(t, clocks, "clock 200", "it asked before all others")
	require.Len(t, p.sightings(t, other), 31, "another safe's")

	p.do(t, "UPDATE election SET revision = revision + 1 WHERE name = ?", name)
	before := p.sent.Load()
	refused(name)
	require.Equal(t, int64(6+2*3), p.sent.Load()-before, "statements, with BEGIN, lock and COMMIT around two: see doc.go")
	require.Equal(t, own, p.sightings(t, name), "the state that the others saw never comes back")

	const life = 3 * time.Second
	name = p.alien(t, store, life)
	start := time.Now()
	refused(name)
	p.sighted(t, name, 200)
	for {
		_, err := store.Create(within(t, patience), name, signed("v"))
		if err == nil {
			break
		}
		require.ErrorIs(t, err, kv.ErrHeld)
		require.Less(t, time.Since(start), patience)
		time.Sleep(100 * time.Millisecond)
	}
	require.GreaterOrEqual(t, time.Since(start), life-life/500)
	require.Empty(t, p.sightings(t, name))
}
