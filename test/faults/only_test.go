//go:build linux

package faults

import (
	"slices"
	"strings"
)

// on returns for row.only that a row is about some stores.
func on(why string, stores ...string) func(column) string {
	return func(c column) string {
		if slices.Contains(stores, c.name) {
			return ""
		}
		return why
	}
}

// overNetwork is for rows that spoil the network.
func overNetwork(c column) string {
	if c.nodes == 0 {
		return "there is no network between a process and its host's files"
	}
	return ""
}

// withServer is for rows that harm a server on which all depends.
func withServer(c column) string {
	if c.nodes == 0 {
		return "there is no server, only the kernel"
	}
	return ""
}

// allServers is for rows that harm the server, or all of them where one has
// replicas or shards.
func allServers(c column) string {
	if why := withServer(c); why != "" {
		return why
	}
	if c.nodes > 1 {
		return "its servers vote; see the loss of some of them"
	}
	return ""
}

// oneServer is for rows that harm the only server.
func oneServer(c column) string {
	if why := withServer(c); why != "" {
		return why
	}
	if c.nodes > 1 || strings.Contains(c.name, "-") {
		return "there are several servers; see the loss of some of them"
	}
	return ""
}

// severalServers is for rows that harm some of several servers.
func severalServers(c column) string {
	if c.nodes < 3 {
		return "its servers do not vote"
	}
	return ""
}

// and is for rows that need all of it.
func and(conditions ...func(column) string) func(column) string {
	return func(c column) string {
		for _, condition := range conditions {
			if why := condition(c); why != "" {
				return why
			}
		}
		return ""
	}
}
