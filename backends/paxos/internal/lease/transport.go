package lease

// A Transport carries messages between the members. It may lose, delay, repeat
// and reorder them; it does not change them, and says truly who sent them.
type Transport interface {
	// Listen begins to pass what arrives to deliver, one call after the other or
	// several at once, until Close. It is called once, before the first Send.
	// Deliver returns soon.
	Listen(deliver func(from MemberID, m Message)) error

	// Send passes m on towards a member, or loses it. It does not wait.
	//
	// What a member sends to itself goes to its own address as well. So whatever
	// answers there is that member's one acceptor, and a second process under the
	// same id, which nobody reaches, cannot be one.
	Send(to MemberID, m Message)

	// Close ends everything that was started. When it has returned, deliver is not
	// called any more.
	Close() error
}
