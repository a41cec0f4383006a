package consulkv

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// sharedName is the name of sessions that records share. It has no home: nothing is handed
// over to such a session.
const sharedName = "elections of one process"

// errEnded is the error of a refresh whose record may still be there: it is let go, or its
// session is left to expire.
var errEnded = errors.New("the record was not refreshed in time, and is left to expire")

// createShared creates a record with a session that records share, if there is one or one can
// be made. Otherwise done is false, and nothing was written.
//
// The session is known to live before the record has it: it was renewed after the read, by a
// server that led then or by one that has started all sessions anew since. The write may be
// carried out when nobody waits for it any more; so the key stays on the session's list.
func (s *Store) createShared(ctx context.Context, key string, rec kv.Record) (_ kv.Record, done bool, _ error) {
	seen, err := s.look(ctx, key)
	if err == nil && !seen.vacant() {
		err = kv.ErrHeld
	}
	if err == nil {
		rec.Lease, err = s.shareSession(ctx, key, rec)
	}
	if err != nil || rec.Lease == "" {
		return kv.Record{}, err != nil, err
	}
	created, unused, err := s.claim(ctx, key, seen, rec)
	if unused {
		s.sharing.free(rec.Lease, key)
	}
	return created, true, err
}

// shareSession returns a session that takes the record and lives; none if nobody can say that.
func (s *Store) shareSession(ctx context.Context, key string, rec kv.Record) (string, error) {
	for {
		fresh, err := s.openSession(ctx, rec.TTL)
		if err != nil {
			return "", err
		}
		session := s.sharing.enter(rec.TTL, key, rec.Signature, boottime.Read())
		if session == "" || session == fresh {
			return session, nil
		}
		_, err = s.renewShared(ctx, session)
		if err == nil {
			return session, nil
		}
		s.sharing.free(session, key)
		if !errors.Is(err, kv.ErrStale) { // else it takes no more, and another does
			return "", ctx.Err()
		}
	}
}

// openSession sees to it that there is a session that takes more records. It returns one that was
// granted for that during the call, or none.
func (s *Store) openSession(ctx context.Context, ttl time.Duration) (fresh string, _ error) {
	if !s.sharing.begin(ttl, boottime.Read()) {
		return "", s.sharing.wait(ctx, ttl)
	}
	asked := boottime.Read()
	made, err := s.grantNamed(ctx, sharedName, ttl)
	s.sharing.granted(ttl, made.ID, asked)
	return made.ID, err
}

// renewShared renews a session, be it shared or not. A renewal that comes when a session may be
// at its end proves nothing.
func (s *Store) renewShared(ctx context.Context, session string) (renewal, error) {
	sent := boottime.Read()
	renewed, err := s.renew(ctx, session)
	switch {
	case errors.Is(err, kv.ErrStale):
		s.sharing.close(session)
	case err == nil && !s.sharing.renewed(session, sent, boottime.Read()):
		err = s.sharing.whyEnded(session)
	}
	return renewed, err
}
