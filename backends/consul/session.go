package consulkv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

const (
	longestTTL       = 24 * time.Hour // SessionTTLMax of the servers
	longestLockDelay = time.Minute    // MaxLockDelay of the servers

	// expiryLag is how late a healthy leader ends a session whose time is up:
	// one write through Raft.
	expiryLag = time.Second
)

// grantable returns the TTL that a session has for a record with ttl, in whole
// milliseconds.
func (s *Store) grantable(ttl time.Duration) (time.Duration, error) {
	longest := longestTTL
	if s.checked() {
		longest = longestLockDelay
	}
	switch {
	case ttl <= 0:
		return 0, fmt.Errorf("TTL %v: want a positive duration: %w", ttl, kv.ErrInvalid)
	case ttl < s.opts.MinTTL:
		return 0, fmt.Errorf("TTL %v: want at least %v, since Consul's servers grant no session a shorter one (session_ttl_min): %w",
			ttl, s.opts.MinTTL, kv.ErrInvalid)
	case ttl > longest && s.checked():
		return 0, fmt.Errorf("TTL %v: want up to %v, since a failed check ends a record early and the lock-delay that makes up for it cannot exceed that: %w",
			ttl, longest, kv.ErrInvalid)
	case ttl > longest:
		return 0, fmt.Errorf("TTL %v: want up to %v, the longest that Consul grants a session: %w", ttl, longest, kv.ErrInvalid)
	}
	return (ttl + time.Millisecond - 1).Truncate(time.Millisecond), nil
}

func (s *Store) checked() bool {
	return len(s.opts.NodeChecks) > 0 || len(s.opts.ServiceChecks) > 0
}

// lockDelay returns the lock-delay of a session with the TTL. A failed check
// ends a session at once, while its owner still trusts it: then nobody else may
// come in before the TTL has passed.
func (s *Store) lockDelay(ttl time.Duration) time.Duration {
	delay := max(s.opts.LockDelay, time.Millisecond)
	if s.checked() {
		delay = max(delay, ttl)
	}
	return min(delay, longestLockDelay)
}

// homePrefix begins the name of every session that this package makes. What
// follows is the session's home: the key of the record for which it was made.
const homePrefix = "election: "

// A use is what a session is made for: its home, and its TTL, which cannot be changed.
type use struct {
	key string
	ttl time.Duration
}

// grant makes a session for the record at key.
func (s *Store) grant(ctx context.Context, key string, ttl time.Duration) (spare.Lease, error) {
	return s.grantNamed(ctx, homePrefix+key, ttl)
}

func (s *Store) grantNamed(ctx context.Context, name string, ttl time.Duration) (spare.Lease, error) {
	wanted := &api.SessionEntry{
		Name:          name,
		TTL:           ttl.String(),
		LockDelay:     s.lockDelay(ttl),
		Behavior:      api.SessionBehaviorRelease,
		NodeChecks:    s.opts.NodeChecks,
		ServiceChecks: s.opts.ServiceChecks,
	}
	create := s.client.Session().CreateNoChecks
	if s.checked() {
		create = s.client.Session().Create
	}
	made := spare.Lease{TTL: ttl, Since: time.Now()}
	err := s.conns.request(ctx, func(ctx context.Context) (err error) {
		made.ID, _, err = create(wanted, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
	if refusesTTL(err) {
		err = fmt.Errorf("%w: %w", kv.ErrInvalid, err)
	}
	return made, err
}

// refusesTTL recognizes that MinTTL is below what the servers have. They answer
// with the status of an internal error.
func refusesTTL(err error) bool {
	var status api.StatusError
	return errors.As(err, &status) && status.Code == http.StatusInternalServerError &&
		strings.HasPrefix(status.Body, "Invalid Session TTL")
}

// A renewal is what is known of a session that was renewed.
type renewal struct {
	ttl  time.Duration
	home string
}

// renew starts the session's TTL anew. It returns [kv.ErrStale] if there is no
// such session.
func (s *Store) renew(ctx context.Context, session string) (renewal, error) {
	if session == "" {
		return renewal{}, fmt.Errorf("no session: %w", kv.ErrStale)
	}
	var found *api.SessionEntry
	err := s.conns.request(ctx, func(ctx context.Context) (err error) {
		found, _, err = s.client.Session().Renew(session, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
	if err != nil {
		return renewal{}, err
	}
	if found == nil {
		return renewal{}, fmt.Errorf("session %s has ended: %w", session, kv.ErrStale)
	}
	ttl, err := time.ParseDuration(found.TTL)
	if err != nil {
		return renewal{}, fmt.Errorf("session %s: %w", session, err)
	}
	home, ours := strings.CutPrefix(found.Name, homePrefix)
	if !ours {
		home = ""
	}
	return renewal{ttl: ttl, home: home}, nil
}

func (s *Store) destroy(ctx context.Context, session string) error {
	err := s.conns.request(ctx, func(ctx context.Context) error {
		_, err := s.client.Session().Destroy(session, (&api.WriteOptions{}).WithContext(ctx))
		return err
	})
	if err != nil {
		return fmt.Errorf("session %s is left to expire: %w", session, err)
	}
	return nil
}

// giveBack destroys a session that was made for nothing, and returns why.
func (s *Store) giveBack(ctx context.Context, session string, why error) error {
	return errors.Join(why, s.destroy(ctx, session))
}
