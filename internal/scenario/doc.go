// Package scenario plays scripts of what befalls the candidates of an election,
// in fake time, and says what comes of it.
//
// A script is a text: one command per line, such as "candidate a rank 2", "advance
// 5s" and "kill a". What happens is its trace, which the files of testdata/succession
// have below their scripts, and which docs/succession.md shows as drawings. Whatever
// a script does, a world asserts what holds in every election: one leader at a time,
// tokens that grow, no safe that is given up before the work has stopped, nothing that
// spins, nothing left behind.
//
// It knows the engine as its users do, and the clocks and the jitter of package seam.
package scenario
