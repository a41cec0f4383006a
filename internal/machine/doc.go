// Package machine decides what a campaign does: to become the leader of an election, to stay
// it, and to leave. It is pure. [Step] takes a campaign, a moment and an event, and
// returns the campaign after it and what is to be done; there is no clock, no store, no
// goroutine and no log in here. A runtime makes the requests, watches the keys, and calls
// Step again when [Campaign.Due] says so.
//
// # Keys and locks
//
// An election has two keys in the store: the leader's and the heir's. A campaign has a [Lock]
// for each. A term is the leader's key owned, an heir's place is the heir's key owned; both
// are claimed, refreshed and left by the same code. What a lock does about its key is its
// [Phase]; what its requests have left there, or may leave, is its [Remains].
//
//	            a watch shows …                       an answer …
//	phase       vacant       another's    ours        OK            refused       unclear
//	Idle        –            –            –           –             –             –
//	Waiting     claim, or    wait, or     owner if    owner if      watch, and    possible:
//	            wait for     displace     possible,   in time,      wait          watch, and
//	            the others   it           else stray  else stray                  claim again
//	Owner       refresh      refresh      –           trust from    ended:        refresh again
//	            now          now                      its send      taken         before long
//	Lapsed      refresh now  refresh now  –           –             nothing left  refresh again
//	Leaving     –            –            –           nothing left  nothing left  find out
//
//	phase       when it is due                        when trust runs out   leave
//	Idle        –                                     –                     –
//	Waiting     create; delete a stray; refresh what  –                     Leaving
//	            was handed over
//	Owner       refresh; publish                      Lapsed: expired       Leaving
//	Lapsed      refresh, as long as work goes on      –                     Leaving
//	Leaving     delete; look; hand over               –                     Leaving, with another deadline
//
// A lock has one request at a time on its way. What a watch shows meanwhile is weighed after
// the answer, since it may be older than that.
//
// # Stages
//
// A campaign competes for the leader's key at once, blindly, if nobody can come before it:
// the first claim is the first request. If that is refused it competes for the heir's key,
// and as heir waits for the leader's.
//
//	Standing ──elected──▶ Leading ──ended──▶ Over ──release──▶ Quitting ──▶ Done
//	    └────────────────── withdraw ──────────────────────────────▲
//
// # Trust
//
// A lease is trusted until the moment before the last successful request was sent, plus the
// TTL that was granted, minus the margin. An answer that comes after that brings no trust
// back. Time is the larger of what two clocks say ([Instant]).
//
// An heir that the leader has handed over to leads at once if the lease that now backs the
// record is its own place's, whose trust has not been broken and has a third of the TTL left.
// That is safe because a hand-over requires the heir's own record, whose signature one
// campaign alone has ever used. Otherwise it refreshes the record first.
//
// # Proof
//
// The tests explore all that can happen to one and two candidates to a depth that they print,
// and long histories of three at random: lost, late and doubled requests, answers that are
// lost, watches that are late, crashes, partitions, resignations. In each state at most one
// campaign trusts its lease, and the store holds its record; a record of a campaign is known
// to it; when the faults are over, a leader is elected. Bugs that are planted are found.
package machine
