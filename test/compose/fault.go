package main

import (
	"context"
	"fmt"
)

// A fault is done to the container of a service.
type fault struct {
	does string // to the service, for people
	cuts bool   // the network
	do   func(context.Context, *project, *cluster, string) (undo func(context.Context) error, err error)
}

// faults are the ones that are played, one after the other.
func faults() []fault {
	return []fault{
		{"is stopped", false, onContainer("stop", "start")},
		{"is paused", false, onContainer("pause", "unpause")},
		{"has its network cut", true, disconnect},
	}
}

// onContainer does a fault, and undoes it, by a command of docker each.
func onContainer(do, undo string) func(context.Context, *project, *cluster, string) (func(context.Context) error, error) {
	return func(ctx context.Context, p *project, _ *cluster, service string) (func(context.Context) error, error) {
		id, err := p.container(ctx, service)
		if err != nil {
			return nil, err
		}
		_, err = docker(ctx, do, id)
		return func(ctx context.Context) error {
			_, err := docker(ctx, undo, id)
			return err
		}, err
	}
}

// disconnect takes the container's network away, and gives it back. A container that
// has another address then, and a server that is bound to the old one, starts again.
func disconnect(ctx context.Context, p *project, c *cluster, service string) (func(context.Context) error, error) {
	id, err := p.container(ctx, service)
	if err != nil {
		return nil, err
	}
	address := func(ctx context.Context) (string, error) {
		return docker(ctx, "inspect", "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", id)
	}
	before, err := address(ctx)
	if err != nil {
		return nil, err
	}
	_, err = docker(ctx, "network", "disconnect", network, id)
	return func(ctx context.Context) error {
		if _, err := docker(ctx, "network", "connect", "--alias="+service, network, id); err != nil {
			return err
		}
		after, err := address(ctx)
		if err == nil && after != before && c.bound {
			fmt.Fprintf(p.log, "%s was at %s and is at %s now: it starts again\n", service, before, after)
			_, err = docker(ctx, "restart", id)
		}
		return err
	}, err
}
