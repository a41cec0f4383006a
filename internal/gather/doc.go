// Package gather combines the refreshes that many elections of a process ask for at about
// the same time into one request.
//
// The first refresh opens a round. Those that follow within its window
// join it, and when the window closes, all of them go to the store in one call
// ([kv.Batch]). Each caller gets its own verdict. Rounds do not wait for each other, so one
// that the store does not answer does not delay later refreshes.
//
// The caller counts its trust from when it asked, which is before anything is sent. So a
// window costs that much trust, and never adds any.
//
// Elections whose refreshes are due at about the same time are also woken together ([Alarm]).
//
// A refresh that is in no hurry rides along with a round that was opened for others ([Ride]). It
// comes behind them, and does not prolong the round.
//
// A round lasts no longer than the refreshes that it was opened for: when all of them have
// been called off, its request is called off too.
package gather
