// Package sim is a world for elections to be held in: a store, the network
// between it and the candidates, and everybody's clocks, all of which go wrong
// as a [Schedule] says.
//
// The world runs in a testing/synctest bubble, whose time is the true time. What
// candidates and the store read are clocks of their own ([Clock]). All that the world
// does follows from the schedule and its seed, and no two things happen at the same
// nanosecond by design. So the same schedule makes the same history, but for what Go
// decides within one nanosecond: in which order goroutines of one process go on that
// wake together (from a pause, say, or told by two watches), and which of two channels a
// select takes if both are ready. Without a succession a history differs from the last
// one in about one schedule of twenty, with one in about one of five. So a failure
// is written down with its whole history, and may take a few runs to come again.
//
// The store holds a line of records, of which the first is what the safe holds. A
// schedule says whether candidates can join it; old clients wait there with them,
// or for a vacancy.
//
// The candidates are given by whoever calls [Run]; the package does not know the
// election engine, so that it can also run engines with bugs.
package sim
