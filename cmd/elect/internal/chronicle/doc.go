// Package chronicle follows elections from the outside, and keeps for each who led when, for
// people to look at. It only reads: it watches the leader's safe and the heir's, reads the hold of
// an election that falls vacant and, if it is asked to, the roster now and then.
//
// # What an observer can tell
//
// A [Spell] is a stretch of time in which an election was in one state. Spells follow each other
// without holes. How a term ended is told from what came after it:
//
//   - The next record has the signature that the heir had in its own safe: the leader has
//     handed over.
//   - Any other record, or none: there was no hand-over. A leader that gives up hands over if
//     there is an heir, so if there was one, the leader was lost: killed, frozen or cut off.
//     If there was none, it may as well have given up.
//   - The store could not be watched at that time: unknown.
//
// An observer does not see refreshes, so it cannot tell how long a leader may still trust its
// lease. What comes and goes between two looks of a store that is polled goes unseen.
//
// Rosters are read in turn, at most five in a second. So what is known of a roster is some seconds
// old, or some minutes if there are very many elections. The watches tell who leads and who is the
// heir.
//
// All times are readings of the clock of package boottime in the observer's own process, taken
// when a change was seen. Only Since in [Owner] and [Candidate] is by a wall clock, that of the host
// it is about.
package chronicle
