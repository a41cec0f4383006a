package wire

import (
	"context"
	"errors"
	"slices"
)

// SetMembers has the node connect with these members, in whatever form and order, and with
// no other ones any more. The node itself is one of them, listed or not. Nothing happens to
// connections with those that were members before and are. Those of others end: what waits
// for them is dropped, and what has arrived of them may still be delivered.
//
// A member lets those in that are in its own list. So two that are to connect must have
// each other in their lists, and until both have, the one that calls goes on calling.
func (n *Node) SetMembers(addrs []string) error {
	if self := n.ours.member; self != "" && !Listed(addrs, self) {
		addrs = append(slices.Clone(addrs), self)
	}
	members, err := Members(addrs)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, old := range n.members {
		if !slices.Contains(members, old) {
			n.forget(n.peers[old])
		}
	}
	n.members = members
	for _, member := range members {
		if n.peers[member] == nil {
			p := n.newMember(member)
			n.peers[member] = p
			if n.listening {
				n.connect(p)
			}
		}
	}
	n.door.expect(members)
	return nil
}

// Listed reports whether members have an address, in whatever form.
func Listed(members []string, addr string) bool {
	own, err := Member(addr)
	return err == nil && slices.ContainsFunc(members, func(member string) bool {
		other, err := Member(member)
		return err == nil && other == own
	})
}

// newMember returns one that is a member until its end is called.
func (n *Node) newMember(id string) *peer {
	p := n.newPeer(id)
	p.ctx, p.end = context.WithCancel(n.ctx)
	return p
}

// newPeer returns one that is not connected.
func (n *Node) newPeer(id string) *peer {
	return &peer{
		id: id, queue: newQueue(n.config.MaxWait), knock: make(chan struct{}, 1),
		trouble: errors.New("it has not called yet: does it run, with this member in its list?"),
	}
}

// connect has a member called now and whenever its connection is lost, or asks it to call.
func (n *Node) connect(p *peer) {
	switch {
	case n.ctx.Err() != nil:
	case n.ours.member <= p.id: // so does a client
		n.all.Go(func() { n.reach(p) })
	default:
		n.all.Go(func() { n.knock(p) })
	}
}

// forget ends what there is of a member that was one.
func (n *Node) forget(p *peer) {
	p.end()
	if p.link != nil {
		p.link.conn.NetConn().Close()
	}
	delete(n.peers, p.id)
	n.log.forget(p.id)
}

// Peers says which of the members are connected, this one included.
func (n *Node) Peers() []Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []Peer{}
	for _, member := range n.members {
		p := n.peers[member]
		known := Peer{Member: member, Connected: p.link != nil, Trouble: p.trouble}
		if p.link != nil {
			known.Certificate = p.link.conn.ConnectionState().PeerCertificates[0]
		}
		all = append(all, known)
	}
	return all
}
