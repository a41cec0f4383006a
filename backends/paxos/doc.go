// Package paxoskv keeps safes among the candidates themselves, with no server: each
// member of a fixed list grants leases to all, and a majority decides.
package paxoskv
