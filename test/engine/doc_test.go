// Package engine_test holds elections of the engine in fake time, on the memory store and on
// stores that fail: what users are told, what befalls terms, heirs and lines, and what is
// asked of a store meanwhile. It knows package election as its users do.
//
// Tests that need more than that are beside the engine: those of its parts, and the entries
// to packages scenario, simulation and planted.
package engine_test
