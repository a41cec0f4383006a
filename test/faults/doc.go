// Package faults runs elections on real servers while things go wrong, and
// judges what happened: one table of faults and stores.
//
//	go test ./test/faults                                  the short choice
//	go test ./test/faults -faults.full                     every fault on every store
//	go test ./test/faults -faults.full -run 'TestFaults/etcd/04'
//
// Each row of the table (a row is a fault) is played on a stage of its own:
// candidates are processes that write down what they believe before they act
// on it, and each reaches the store by a network link of its own. Packages
// history and oracle say what is written and what is asked of it. It runs on
// Linux.
package faults
