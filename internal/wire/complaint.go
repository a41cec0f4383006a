package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// sameAgain is how long a complaint that was made is not made again.
	sameAgain = time.Minute
	// another is how long no other complaint is made about the same peer.
	another = time.Second
)

// Complaints go to a log, as few as are of use.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]*complaint
}

// A complaint is the last one about a peer.
type complaint struct {
	text    string
	at      time.Time
	skipped int
}

func newComplaints(log *slog.Logger) *complaints {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &complaints{log: log, last: map[string]*complaint{}}
}

// complain logs what is wrong with a peer, unless that was just said. Programs go by the event.
func (c *complaints) complain(peer, event, what string, err error) {
	if err == nil {
		return
	}
	about := peer
	if isClient(peer) {
		about = clientPrefix // there may be too many to remember each
	}
	skipped, say := c.due(about, what+": "+err.Error())
	if say {
		c.log.LogAttrs(context.Background(), slog.LevelWarn, what, slog.String("event", event), slog.String("peer", peer), slog.String("reason", err.Error()), slog.Int("unsaid", skipped))
	}
}

// forget forgets what was said of a peer.
func (c *complaints) forget(peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, peer)
}

func (c *complaints) due(about string, text string) (skipped int, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	last := c.last[about]
	if last == nil {
		last = &complaint{}
		c.last[about] = last
	}
	if since := now.Sub(last.at); since < another || last.text == text && since < sameAgain {
		last.skipped++
		return 0, false
	}
	skipped = last.skipped
	*last = complaint{text: text, at: now}
	return skipped, true
}

// internalError is the alert of a side that cannot go on with a handshake: of package tls, when
// show has returned an error.
const internalError = 80

// plain says of an error of the network what it is, without the ports, which differ
// each time.
func plain(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("nothing was heard of it, or taken by it, in time")
	case outOfTime(err) != nil:
		return fmt.Errorf("its %w", outOfTime(err))
	case errors.As(err, &op) && op.Op == "remote error" && op.Err.Error() == tls.AlertError(internalError).Error():
		return errors.New("it has no certificate to show that is good, as its log says")
	case errors.As(err, &op) && op.Op == "remote error":
		return fmt.Errorf("it refused this side's certificate: %w", op.Err)
	case errors.As(err, &op) && op.Op != "dial":
		return op.Err
	}
	return err
}
