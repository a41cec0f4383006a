package main

import (
	"context"
	"log"

	"github.com/electkv/election"
	"github.com/electkv/election/group"
	"github.com/electkv/election/kv"
)

// follow enters the roster of a name, and has the peers be those that it lists, until ctx ends.
func follow(ctx context.Context, store kv.Store, name string, opts *group.Options, m *group.Member) error {
	own, err := election.New(store, name, &election.Options{ID: opts.ID, Logger: opts.Logger})
	if err != nil {
		return err
	}
	attended := make(chan error, 1)
	go func() { attended <- own.Attend(ctx) }()
	for listed, err := range election.WatchMembers(ctx, store, name) {
		if err != nil {
			continue // the peers stay as they are; Attend logs what is wrong
		}
		addrs := []string{}
		for _, one := range listed {
			addrs = append(addrs, one.ID)
		}
		if err := m.SetRoster(addrs); err != nil {
			log.Print(err)
		}
	}
	return <-attended
}
