// Package trace checks that the engine's runtime carries out what its core (package
// machine) decides. [Tracer] writes what the core was given, and what it asked for, into a
// history; [Followed] replays that, and holds it against what the store was asked, and who
// came to lead.
//
// The proofs of package machine are about [machine.Step]. They say something of the library
// only as far as the library does no more and no less than the effects that Step returns,
// and tells it of what has happened as it was.
package trace
