package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// credentials are the settings of TLS of the next connection. The user may change them at
// any time. Settings that are wrong are not taken, so that a mistake does not cut a member
// off that has others which are still good.
type credentials struct {
	get    func() (*tls.Config, error) // nil if they do not change
	member string
	log    *slog.Logger

	mu      sync.Mutex
	taken   *security
	refused any // what was not taken, and logged: settings, or the text of an error
}

func newCredentials(config Config) (*credentials, error) {
	c := &credentials{get: config.GetTLS, member: config.Self, log: config.Logger}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	user := config.TLS
	if c.get != nil {
		if user != nil {
			return nil, errors.New("both TLS and GetTLS: set one of them")
		}
		var err error
		if user, err = c.get(); err != nil {
			return nil, err
		}
	}
	var err error
	c.taken, err = secure(user, c.member)
	return c, err
}

// current returns the newest settings that are right.
func (c *credentials) current() *security {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.get == nil {
		return c.taken
	}
	user, err := c.get()
	if err != nil {
		c.refuse(err.Error(), err)
		return c.taken
	}
	if user == c.taken.user {
		c.refused = nil
		return c.taken
	}
	next, err := secure(user, c.member)
	if err != nil {
		c.refuse(user, err) // its text may have the time in it, which is another one each time
		return c.taken
	}
	c.taken, c.refused = next, nil
	c.log.LogAttrs(context.Background(), slog.LevelInfo, "certificate changed", next.lasts(slog.String("event", "certificate_changed"))...)
	return next
}

// refuse logs why settings are not taken, once.
func (c *credentials) refuse(what any, err error) {
	if what == c.refused {
		return
	}
	c.refused = what
	c.log.LogAttrs(context.Background(), slog.LevelError, "changed certificate not used, the one before is",
		append(c.taken.lasts(slog.String("event", "certificate_not_used")), slog.String("reason", err.Error()))...)
}

// lasts adds to attributes until when the certificate is good, if it is known.
func (s *security) lasts(attrs ...slog.Attr) []slog.Attr {
	if s.until.IsZero() {
		return attrs
	}
	return append(attrs, slog.Time("until", s.until))
}

// Validity verifies settings as a member with this address, or a client, uses them. It
// returns from when until when their certificate is good, with the authority's.
func Validity(user *tls.Config, member string) (from, until time.Time, err error) {
	if member != "" {
		if member, err = Member(member); err != nil {
			return time.Time{}, time.Time{}, err
		}
	}
	s, err := secure(user, member)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	return s.from, s.until, nil
}
