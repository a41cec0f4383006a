// Package simulation holds elections of the real engine in the simulated worlds of
// package sim, as drawn schedules have them go wrong, and has package oracle judge
// what came of them.
//
// [Prove] simulates as many terms as it is told to. The margin, the rules that need to
// know a schedule, and whether a schedule repeats its history are here too. Package
// planted runs the same worlds with engines that have bugs, for the rules to find.
//
// It knows the engine as its users do, and what package seam has.
package simulation
