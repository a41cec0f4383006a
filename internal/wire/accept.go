package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// clientPrefix begins the id of a client. No address of a member does.
const clientPrefix = "client/"

// clientID is how members know a client.
func clientID(incarnation uint64) string { return fmt.Sprintf("%s%016x", clientPrefix, incarnation) }

func isClient(id string) bool { return strings.HasPrefix(id, clientPrefix) }

// stranger is under which name complaints are made about those without a name.
const stranger = "somebody"

// accept lets visitors in.
func (n *Node) accept() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			if n.ctx.Err() != nil {
				return
			}
			n.log.complain(stranger, "connection_not_accepted", "connection not accepted", plain(err))
			n.wait(minPause)
			continue
		}
		v, crowded := n.door.enter(conn)
		if crowded && n.door.stale() {
			n.all.Go(n.lookUp)
		}
		n.all.Go(func() { n.receive(v) })
	}
}

// receive has a visitor from its hello to its end.
func (n *Node) receive(v *visit) {
	release := n.track(v)
	defer release()
	conn := n.credentials.current().server(v)
	who, incarnation, err := n.welcome(conn)
	if v.leave() {
		err = errCrowded
	}
	if err != nil {
		if n.ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, errKnock) { // one that only looked, or knocked
			n.log.complain(stranger, "connection_refused", "connection refused", fmt.Errorf("from %s: %w", hostOf(v.RemoteAddr().String()), plain(err)))
		}
		return
	}
	if !isClient(who) {
		n.door.meet(who, v)
	}
	err = n.entertain(who, incarnation, conn)
	var network *net.OpError
	if n.ctx.Err() != nil || isClient(who) && (errors.Is(err, errClosed) || errors.As(err, &network)) {
		return // clients come and go
	}
	n.suffer(who, err)
}

// welcome learns who a visitor is, and refuses those that do not belong here.
func (n *Node) welcome(conn *secured) (who string, incarnation uint64, err error) {
	if err := conn.SetDeadline(time.Now().Add(firstByteTime)); err != nil { // more once it has spoken
		return "", 0, err
	}
	if err := conn.HandshakeContext(n.ctx); err != nil {
		return "", 0, fmt.Errorf("certificates: %w", err)
	}
	var theirs hello
	said, err := listenFor(conn)
	if err == nil {
		theirs, err = n.config.Protocol.decode(said)
	}
	if err == nil {
		err = n.admits(theirs, conn)
	}
	if err == nil && theirs.member != n.ours.member {
		err = n.ready()
	}
	if err != nil {
		refuse(conn, err)
		return "", 0, err
	}
	who = theirs.member
	if who == "" {
		who = clientID(theirs.incarnation)
	}
	return who, theirs.incarnation, nil
}

// entertain has a visitor until its connection ends.
func (n *Node) entertain(who string, incarnation uint64, conn *secured) error {
	var l *link
	var err error
	if who == n.ours.member { // the other end of the link by which it sends to itself
		l = &link{node: n, peer: n.newPeer(who), conn: conn}
	} else if l, err = n.attach(who, incarnation, conn); err != nil {
		refuse(conn, err)
		return err
	}
	if _, err := conn.Write(appendFrame(nil, kindHello, n.config.Protocol.encode(n.ours))); err != nil {
		n.detach(l)
		return err
	}
	return l.run()
}

// ready waits for the node to have met itself, but not for long.
func (n *Node) ready() error {
	timer := time.NewTimer(helloTime / 2)
	defer timer.Stop()
	select {
	case <-n.met:
		return nil
	case <-timer.C:
		return errors.New("this member has not yet reached itself at its own address")
	case <-n.ctx.Done():
		return n.ctx.Err()
	}
}

// admits returns an error that says what is wrong with a visitor.
func (n *Node) admits(theirs hello, conn *secured) error {
	n.mu.Lock()
	listed, known := n.members, n.peers[theirs.member]
	n.mu.Unlock()
	switch {
	case theirs.member == "" && n.config.Clients == 0:
		return errors.New("it is a client, and only members are let in here: it needs an address, which their lists have")
	case theirs.member == "":
		return nil
	case known == nil:
		return fmt.Errorf("it says that it is %q, which is no member: the list of the other has %q", theirs.member, strings.Join(listed, ","))
	case theirs.member == n.ours.member && theirs.incarnation != n.ours.incarnation:
		return fmt.Errorf("it says that it is %q, and so does this process: it is started twice", theirs.member)
	}
	leaf := conn.ConnectionState().PeerCertificates[0]
	if err := leaf.VerifyHostname(hostOf(theirs.member)); err != nil {
		return fmt.Errorf("it says that it is %q, and its certificate does not: %w", theirs.member, err)
	}
	if theirs.member > n.ours.member {
		known.knocked()
		return errKnock
	}
	return nil
}

// errKnock refuses a member that this one calls, and now does.
var errKnock = errors.New("it is this side that calls: the address of the caller comes first in the order of the alphabet")
