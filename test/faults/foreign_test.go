//go:build linux

package faults

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// overwrite puts somebody else's value into the safe, as a program that knows
// nothing of this library would, whatever is there.
func (s *stage) overwrite(value string) {
	s.t.Helper()
	s.note(history.Event{Kind: history.Placed, Value: digest(value)})
	var err error
	switch s.col.kind {
	case kindFile:
		err = s.overwriteFile(value)
	case kindEtcd:
		_, err = s.etcd().Put(s.t.Context(), s.name, value)
	case kindConsul:
		_, err = s.consul().KV().Put(&api.KVPair{Key: s.name, Value: []byte(value)}, nil)
	case kindSQLite, kindPostgres, kindMariaDB:
		s.overwriteRow(value)
	default:
		err = s.redis().Set(s.t.Context(), s.name, value, 0).Err()
	}
	require.NoError(s.t, err)
}

// overwriteFile puts a plain file in the place of the safe's folder in one step, as
// the other stores do: while there is nothing, a candidate may take the safe.
func (s *stage) overwriteFile(value string) error {
	file := filepath.Join(s.addrs[0], s.name+".new")
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		return err
	}
	err := unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, s.folder(), unix.RENAME_EXCHANGE)
	if errors.Is(err, fs.ErrNotExist) { // nothing to exchange it for
		return os.Rename(file, s.folder())
	}
	return errors.Join(err, os.RemoveAll(file))
}

// folder is where the file store keeps the safe.
func (s *stage) folder() string { return filepath.Join(s.addrs[0], "safes", s.name) }

// unharmed notes what the safe holds now.
func (s *stage) unharmed() {
	s.t.Helper()
	s.note(history.Event{Kind: history.Found, Value: digest(s.content())})
}

// content returns the bytes in the safe, as its store's own client shows them.
func (s *stage) content() string {
	s.t.Helper()
	switch s.col.kind {
	case kindFile:
		text, err := os.ReadFile(s.folder())
		require.NoError(s.t, err)
		return string(text)
	case kindEtcd:
		resp, err := s.etcd().Get(s.t.Context(), s.name)
		require.NoError(s.t, err)
		require.Len(s.t, resp.Kvs, 1)
		return string(resp.Kvs[0].Value)
	case kindConsul:
		pair, _, err := s.consul().KV().Get(s.name, nil)
		require.NoError(s.t, err)
		require.NotNil(s.t, pair)
		return string(pair.Value)
	case kindSQLite, kindPostgres, kindMariaDB:
		return s.valueInRow()
	}
	text, err := s.redis().Get(s.t.Context(), s.name).Result()
	require.NoError(s.t, err)
	return text
}

// digest keeps histories small.
func digest(value string) string {
	if len(value) <= 100 {
		return value
	}
	h := fnv.New64a()
	h.Write([]byte(value))
	return fmt.Sprintf("%s… (%d bytes, %x)", value[:20], len(value), h.Sum64())
}

// deposed waits until the leader knows that its term is over, and demands that
// this was within a refresh period of the given time.
func (s *stage) deposed(term history.Stretch, since time.Duration) {
	s.t.Helper()
	e := s.awaitOf(term.Who, history.Ended)
	require.Equal(s.t, term.Token, e.Token)
	require.LessOrEqual(s.t, e.At-since, s.notice(), "the leader learns of its loss by its next refresh")
}

// notice is within what time a leader learns that its record is gone: by its
// next refresh, on a busy machine.
func (s *stage) notice() time.Duration { return s.ttl/3 + s.slack(s.ttl/3) }

// nobody lets time pass, and demands that nobody has been elected since the
// given time.
func (s *stage) nobody(since, d time.Duration) {
	s.t.Helper()
	s.pass(d)
	for _, e := range s.events().Of("", history.Elected) {
		require.Less(s.t, e.At, since, "%s was elected", e.Who)
	}
}

// taken has somebody else's value put into the safe and demands that the leader
// goes, that nobody follows as long as the value is there, and that it stays as
// it is.
func (s *stage) taken(value string) {
	s.t.Helper()
	first := s.alive()
	since := boottime.Now()
	s.overwrite(value)
	s.deposed(first, since)
	s.nobody(since+s.slack(s.ttl/3), s.life.Max+s.ttl)
	s.unharmed()
}

// gone removes somebody else's value, upon which somebody is to lead.
func (s *stage) gone() {
	s.t.Helper()
	s.due("", s.vacancy(), "the foreign record was removed")
	s.erase()
	s.leader()
}

// vacancy is within what time candidates see that a safe was emptied by an
// operator: Redis and databases push no news of that, and are looked at once a
// second.
func (s *stage) vacancy() time.Duration {
	if strings.HasPrefix(s.col.kind, "redis") || s.inTable() {
		return time.Second + s.release()
	}
	return s.release()
}

// barred takes from the candidates a right that they need, and gives it back.
// While it is taken, the leader's term runs out and nobody follows.
func (s *stage) barred(what string, take, give func()) {
	s.t.Helper()
	first := s.alive()
	s.fault(what + " is taken away")
	since := boottime.Now()
	take()
	s.awaitOf(first.Who, history.Ended)
	s.nobody(since, 3*s.ttl)
	s.due("", s.recovery(), what+" was given back")
	give()
	s.healed(what + " is given back")
	s.leader()
	s.pass(s.ttl)
}
