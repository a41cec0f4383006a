package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// breath is the longest silence of a healthy side.
	breath = time.Second
	// silence is after how long without a word, or with nothing taken, a connection
	// is given up.
	silence = 3 * time.Second
)

// A link is a connection with a peer that has been let in.
type link struct {
	node        *Node
	peer        *peer
	incarnation uint64
	conn        *secured
}

// attach makes a connection the one of its peer. A lost connection is replaced by a
// new one of the same incarnation; another incarnation has to wait for its end.
func (n *Node) attach(id string, incarnation uint64, conn *secured) (*link, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peers[id]
	switch {
	case p == nil && !isClient(id):
		return nil, fmt.Errorf("member %q has been taken from the list of members", id)
	case p == nil:
		if len(n.peers) >= len(n.members)+n.config.Clients {
			return nil, fmt.Errorf("%d clients are connected already, which are the most", n.config.Clients)
		}
		p = n.newPeer(id)
		n.peers[id] = p
	}
	if old := p.link; old != nil {
		if old.incarnation != incarnation {
			return nil, fmt.Errorf("member %q is connected already, as another process: is it started twice? If it was restarted, it is let in when its old connection has ended, after %v at the latest", id, silence)
		}
		old.conn.NetConn().Close()
	}
	p.link = &link{node: n, peer: p, incarnation: incarnation, conn: conn}
	p.trouble = nil
	p.queue.mu.Lock()
	p.queue.signal() // something may have waited for the connection
	p.queue.mu.Unlock()
	return p.link, nil
}

// detach forgets a connection that has ended.
func (n *Node) detach(l *link) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.peer.link != l {
		return
	}
	l.peer.link = nil
	l.peer.trouble = errors.New("the connection has ended")
	if isClient(l.peer.id) {
		delete(n.peers, l.peer.id)
	}
}

// run carries messages until the connection ends, and says why.
func (l *link) run() error {
	defer l.node.detach(l)
	if err := l.conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	done := make(chan struct{})
	var writer sync.WaitGroup
	var writeErr error
	writer.Go(func() {
		if writeErr = l.write(done); writeErr != nil {
			l.conn.NetConn().Close()
		}
	})
	err := l.read()
	close(done)
	l.conn.NetConn().Close() // a write that hangs ends
	writer.Wait()
	if errors.Is(err, net.ErrClosed) && writeErr != nil {
		return writeErr // which is why it was closed
	}
	return err
}

// errClosed means that the other side has ended the connection in order.
var errClosed = errors.New("it has closed the connection")

// read hands out what arrives, as long as the certificates of both sides are good.
func (l *link) read() error {
	from := bufio.NewReader(l.conn)
	ends, whose := l.conn.ends()
	for {
		left := ends.Sub(l.conn.security.now())
		if left <= 0 {
			return expired(whose, ends)
		}
		if err := l.conn.SetReadDeadline(time.Now().Add(min(silence, left))); err != nil {
			return err
		}
		k, body, err := readFrame(from, MaxMessage)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && left < silence:
			return expired(whose, ends)
		case errors.Is(err, io.EOF):
			return errClosed
		case err != nil:
			return err
		}
		switch k {
		case kindAlive:
		case kindMessage:
			if err := l.node.deliver(l.peer.id, body); err != nil {
				return err
			}
		case kindRefusal:
			return refusal(body)
		default:
			return fmt.Errorf("a frame of kind %d in the middle", k)
		}
	}
}

func expired(whose string, at time.Time) error {
	return fmt.Errorf("%s has expired, at %s", whose, at.UTC().Format(time.RFC3339))
}

// write sends what waits, and a sign of life where nothing does.
func (l *link) write(done <-chan struct{}) error {
	timer := time.NewTimer(breath)
	defer timer.Stop()
	for {
		var batch []byte
		select {
		case <-done:
			return nil
		case <-timer.C:
			batch = appendFrame(nil, kindAlive, nil)
		case <-l.peer.queue.news:
			if batch = l.peer.queue.take(); batch == nil {
				continue
			}
		}
		if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
			return err
		}
		if _, err := l.conn.Write(batch); err != nil {
			return err
		}
		l.peer.queue.written()
		timer.Reset(breath)
	}
}
