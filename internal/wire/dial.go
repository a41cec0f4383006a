package wire

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
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

// reach keeps a connection with a member, for as long as it is one.
func (n *Node) reach(p *peer) {
	call := n.visit
	if p.id == n.ours.member {
		call = n.meet
	}
	pause := minPause
	for p.ctx.Err() == nil {
		begin := time.Now()
		err := call(p)
		if p.ctx.Err() != nil {
			return
		}
		n.suffer(p.id, err)
		if time.Since(begin) > 2*maxPause {
			pause = minPause
		}
		if waitFor(p.ctx, p.knock, pause/2+rand.N(pause)) {
			pause = minPause
			waitFor(p.ctx, nil, minPause) // it may knock as often as it likes
		}
		pause = min(2*pause, maxPause)
	}
}

// knock asks a member that calls this one to do so now. It is refused, as all are that
// should be called, and if it is refused for another reason, that is why it is not called.
// A member that is not there has nothing to wait for.
func (n *Node) knock(p *peer) {
	select {
	case <-n.met:
	case <-p.ctx.Done():
		return
	}
	_, _, release, err := n.call(p)
	if err == nil {
		release()
	}
	var why refusedError
	if errors.As(err, &why) && string(why) != errKnock.Error() && p.ctx.Err() == nil {
		n.suffer(p.id, err)
	}
}

// knocked has a member called that asks for it.
func (p *peer) knocked() {
	select {
	case p.knock <- struct{}{}:
	default:
	}
}

// suffer notes why a member is not connected.
func (n *Node) suffer(id string, err error) {
	err = plain(err)
	n.mu.Lock()
	p := n.peers[id]
	if p != nil && p.link == nil {
		p.trouble = err
	}
	n.mu.Unlock()
	if p != nil || isClient(id) { // and none that was a member
		n.log.complain(id, "peer_not_connected", "peer not connected", err)
	}
}

// meet calls the node's own address, to learn that it is reached there and nobody else.
func (n *Node) meet(p *peer) error {
	conn, theirs, release, err := n.call(p)
	if err != nil {
		return fmt.Errorf("this member does not reach itself at its own address: %w", err)
	}
	defer release()
	if theirs.incarnation != n.ours.incarnation {
		err := errors.New("another process answers at this member's own address: it is started twice, and this one keeps out")
		refuse(conn, err)
		return err
	}
	l, err := n.attach(p.id, theirs.incarnation, conn)
	if err != nil {
		return err
	}
	n.once.Do(func() { close(n.met) })
	return l.run()
}

// visit connects with a member, and returns when the connection has ended.
func (n *Node) visit(p *peer) error {
	select {
	case <-n.met:
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	conn, theirs, release, err := n.call(p)
	if err != nil {
		return err
	}
	defer release()
	l, err := n.attach(p.id, theirs.incarnation, conn)
	if err != nil {
		refuse(conn, err)
		return err
	}
	return l.run()
}

// call dials a member and exchanges hellos.
func (n *Node) call(p *peer) (conn *secured, theirs hello, release func(), err error) {
	ctx, cancel := context.WithTimeout(p.ctx, dialTime)
	defer cancel()
	plainConn, err := n.config.Dial(ctx, "tcp", p.id)
	if err != nil {
		return nil, hello{}, nil, err
	}
	release = n.track(plainConn)
	conn = n.credentials.current().client(plainConn, hostOf(p.id))
	theirs, err = n.greet(conn, p)
	if err != nil {
		release()
		return nil, hello{}, nil, err
	}
	return conn, theirs, release, nil
}

// greet exchanges hellos with the member that was called.
func (n *Node) greet(conn *secured, p *peer) (hello, error) {
	if err := conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return hello{}, err
	}
	if err := conn.HandshakeContext(p.ctx); err != nil {
		return hello{}, fmt.Errorf("certificates: %w", err)
	}
	if _, err := conn.Write(appendFrame(nil, kindHello, n.config.Protocol.encode(n.ours))); err != nil {
		return hello{}, err
	}
	said, err := listenFor(conn)
	if err != nil {
		return hello{}, err
	}
	theirs, err := n.config.Protocol.decode(said)
	if err == nil && theirs.member != p.id {
		err = fmt.Errorf("it says that it is %q: its address leads elsewhere", theirs.member)
	}
	if err != nil {
		refuse(conn, err)
		return hello{}, err
	}
	return theirs, nil
}

// listenFor reads a hello, or why there is none.
func listenFor(conn *secured) ([]byte, error) {
	k, body, err := readFrame(conn, maxHello)
	switch {
	case err != nil:
		return nil, err
	case k == kindRefusal:
		return nil, refusal(body)
	case k != kindHello:
		return nil, errors.New("it does not speak this protocol")
	}
	return body, nil
}

// A refusedError is what a peer says of why it does not want to talk to us.
type refusedError string

func (why refusedError) Error() string {
	return "it refused the connection, and said of this side: " + string(why)
}

// refusal reads it.
func refusal(text []byte) error {
	if len(text) > maxRefusal {
		text = text[:maxRefusal]
	}
	return refusedError(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(text)))
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
