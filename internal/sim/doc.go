// Package sim is a world for elections to be held in: a store, the network
// between it and the candidates, and everybody's clocks, all of which go wrong
// as a [Schedule] says.
//
// The world runs in a testing/synctest bubble, whose time is the true time. What
// candidates and the store read are clocks of their own ([Clock]). Nothing is
// left to chance but what the schedule's seed decides, and no two things happen
// at the same nanosecond by design: the same schedule makes the same history.
//
// The store holds a line of records, of which the first is what the safe holds. A
// schedule says whether candidates can join it; old clients wait there with them,
// or for a vacancy.
//
// The candidates are given by whoever calls [Run]; the package does not know the
// election engine, so that it can also run engines with bugs.
package sim
