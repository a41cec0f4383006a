// Package sim is a simulated world for elections: a store, the network
// between it and the candidates, and the clocks of all of them, which go wrong
// as a [Schedule] says.
//
// The world runs in a testing/synctest bubble, whose time is the true time. What
// candidates and the store read are clocks of their own ([Clock]). All that the world
// does follows from the schedule and its seed, and no two things happen at the same
// nanosecond by design. So the same schedule makes the same history, except for what Go
// decides within one nanosecond: in which order goroutines of one process go on that
// wake together (for example from a pause, or by two watches), and which of two channels a
// select takes if both are ready. Without a succession a history differs from the previous
// one in about one schedule of twenty, with a succession in about one of five. So a failure
// is written down with its whole history, and may take a few runs to come again.
//
// The store holds a line of records, of which the first is what the safe holds. A
// schedule says whether candidates can join it; old clients wait there with them,
// or for a vacancy.
//
// The caller of [Run] provides the candidates. The package does not know the
// election engine, so that it can also run engines with bugs.
package sim
