package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

const (
	minPause = 50 * time.Millisecond
	maxPause = time.Second / 2
	// helloTime bounds everything up to the end of the hellos.
	helloTime = 3 * time.Second
	// dialTime bounds the wait for an answer at the address: the packet that asks is
	// sent again after a second.
	dialTime = 1500 * time.Millisecond
)

// reach keeps a connection with a member, until the node is closed.
func (n *Node) reach(member lease.MemberID) {
	call := n.visit
	if member == n.ours.member {
		call = n.meet
	}
	pause := minPause
	for n.ctx.Err() == nil {
		begin := time.Now()
		err := call(member)
		if n.ctx.Err() != nil {
			return
		}
		n.suffer(member, err)
		if time.Since(begin) > 2*maxPause {
			pause = minPause
		}
		if n.waitFor(n.knocks[member], pause/2+rand.N(pause)) {
			pause = minPause
			n.wait(minPause) // it may knock as often as it likes
		}
		pause = min(2*pause, maxPause)
	}
}

// knock asks a member that calls this one to do so now. It is refused, as all are that
// should be called; a member that is not there has nothing to wait for.
func (n *Node) knock(member lease.MemberID) {
	select {
	case <-n.met:
	case <-n.ctx.Done():
		return
	}
	if _, _, release, err := n.call(member); err == nil {
		release()
	}
}

// knocked has a member called that asks for it.
func (n *Node) knocked(member lease.MemberID) {
	select {
	case n.knocks[member] <- struct{}{}:
	default:
	}
}

// suffer notes why a member is not connected.
func (n *Node) suffer(id lease.MemberID, err error) {
	err = plain(err)
	n.mu.Lock()
	p := n.peers[id]
	if p != nil && p.link == nil {
		p.trouble = err
	}
	n.mu.Unlock()
	n.log.complain(id, "peer not connected", err)
}

// meet calls the node's own address, to learn that it is reached there and nobody else.
func (n *Node) meet(member lease.MemberID) error {
	conn, theirs, release, err := n.call(member)
	if err != nil {
		return fmt.Errorf("this member does not reach itself at its own address: %w", err)
	}
	defer release()
	if theirs.incarnation != n.ours.incarnation {
		err := errors.New("another process answers at this member's own address: it is started twice, and this one keeps out")
		refuse(conn, err)
		return err
	}
	l, err := n.attach(member, theirs.incarnation, conn)
	if err != nil {
		return err
	}
	n.once.Do(func() { close(n.met) })
	return l.run()
}

// visit connects with a member, and returns when the connection has ended.
func (n *Node) visit(member lease.MemberID) error {
	select {
	case <-n.met:
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
	conn, theirs, release, err := n.call(member)
	if err != nil {
		return err
	}
	defer release()
	l, err := n.attach(member, theirs.incarnation, conn)
	if err != nil {
		refuse(conn, err)
		return err
	}
	return l.run()
}

// call dials a member and exchanges hellos.
func (n *Node) call(member lease.MemberID) (conn *secured, theirs hello, release func(), err error) {
	ctx, cancel := context.WithTimeout(n.ctx, dialTime)
	defer cancel()
	plainConn, err := n.config.Dial(ctx, "tcp", string(member))
	if err != nil {
		return nil, hello{}, nil, err
	}
	release = n.track(plainConn)
	conn = n.credentials.current().client(plainConn, hostOf(member))
	theirs, err = n.greet(conn, member)
	if err != nil {
		release()
		return nil, hello{}, nil, err
	}
	return conn, theirs, release, nil
}

// greet exchanges hellos with the member that was called.
func (n *Node) greet(conn *secured, member lease.MemberID) (hello, error) {
	if err := conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return hello{}, err
	}
	if err := conn.HandshakeContext(n.ctx); err != nil {
		return hello{}, fmt.Errorf("certificates: %w", err)
	}
	if _, err := conn.Write(appendFrame(nil, kindHello, n.ours.encode())); err != nil {
		return hello{}, err
	}
	theirs, err := listenFor(conn)
	if err != nil {
		return hello{}, err
	}
	if err = theirs.differs(n.ours); err == nil && theirs.member != member {
		err = fmt.Errorf("it says that it is %q: its address leads elsewhere", theirs.member)
	}
	if err != nil {
		refuse(conn, err)
		return hello{}, err
	}
	return theirs, nil
}

// listenFor reads a hello, or why there is none.
func listenFor(conn *secured) (hello, error) {
	k, body, err := readFrame(conn, maxHello)
	switch {
	case err != nil:
		return hello{}, err
	case k == kindRefusal:
		return hello{}, refusal(body)
	case k != kindHello:
		return hello{}, errors.New("it does not speak this protocol")
	}
	return decodeHello(body)
}

// refusal is what a peer says of why it does not want to talk to us.
func refusal(text []byte) error {
	if len(text) > maxRefusal {
		text = text[:maxRefusal]
	}
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(text))
	return fmt.Errorf("it refused the connection, and said of this side: %s", printable)
}

// refuse says why not.
func refuse(conn *secured, why error) {
	text := []byte(why.Error())
	if len(text) > maxRefusal {
		text = text[:maxRefusal]
	}
	// Who does not listen is refused all the same.
	_, _ = conn.Write(appendFrame(nil, kindRefusal, text))
	_ = conn.Close()
}
