// Package wire carries messages between the members of a cluster, and from its
// clients to them, over TCP with mutual TLS. What a message is, the user of the package
// knows: here it is bytes, at most [MaxMessage] of them.
//
// # Delivery
//
// A message arrives once or not at all; messages of two connections may overtake each
// other. Nothing is sent again: who needs an answer asks again. A send never blocks.
// What waits for a peer, slow or not connected, is bounded in number, size and age. When
// there is no room the oldest message goes. None waits longer than [Config].MaxWait: what
// is older is of no use to the protocol above any more.
//
// # Connections
//
// Two members share one connection. The one whose address comes first in the order of
// the alphabet dials, and dials again when the connection is lost, after a pause that
// doubles from 50 ms to 500 ms, with jitter. A member that starts knocks once at those that
// call it: it is refused, and called at once. Each side says something at least once a
// second. A connection on which nothing arrived for three seconds is closed, and so
// is one that took nothing for as long: a black hole is noticed.
//
// # Who is let in
//
// Only TLS 1.3, and both sides show a certificate that the cluster's authority signed.
// A certificate is bound to the member: one of its subject alternative names must be
// the host of the member's address in the list, whichever side dials. Members on one
// host may share one. A connection ends when the certificate of either side does; the
// next one asks for it anew. Then each side says its hello: name and version of the
// protocol, member, incarnation, and the terms that both must agree upon. Which terms
// there are is the protocol's choice: the list of members may be one, or each side has
// its own list, which can change (see [Node.SetMembers]). Either way only those are let in
// that are in the list here. Where any of these is not as it must be, the connection is
// refused with a reason, which both sides log, and not more often than is of use.
//
// A connection must send its first byte within a second and the rest of its hello
// within three. Until then it waits at the door, where connections from each address,
// and all those from addresses that are not members', are bounded. When there is no room,
// a newcomer takes the place of the oldest one that is silent, of the address with most
// connections; so whoever only connects keeps nobody out.
//
// A client is no member: it has no address, nobody dials it, and its certificate may
// be of any name. It dials all members. A member lets in as many as its config says, by
// default none.
//
// # One process a member
//
// Two processes that believe to be the same member would each act for it. So a member
// first dials its own address, and neither dials nor lets in anybody else before it
// has met itself there, known by its incarnation. A process that meets another one
// there waits and complains. What a member sends to itself goes through that
// connection. A member that is connected is not replaced by another incarnation before
// its connection has ended.
//
// # Time
//
// Messages carry spans of time. No reading of a clock is ever sent.
package wire
