// Package board shows safes to many followers, without a goroutine for each that waits: the
// half of [kv.Board] that stores have in common.
//
// A [Board] has a topic for each safe that is followed. All followers of a safe share
// its topic. The store says how to read a safe ([Look]), and tells the topic when it may
// be worth reading it again ([Topic.Hint]). A goroutine runs while a look or a call of a
// follower is under way; between them there is one timer per topic.
package board
