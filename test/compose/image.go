package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// standInLabel marks the images that were built here.
const standInLabel = "election.stand-in"

// provide sees that the images are here. An image that is missing is pulled, and
// so is one that a stand-in takes the place of. Only where no registry can be
// reached is a stand-in built, if build says so, or one from earlier used; log
// is told about each.
func provide(ctx context.Context, log io.Writer, images []string, build bool) error {
	var providing sync.WaitGroup
	errs := make([]error, len(images))
	for i, image := range images {
		providing.Go(func() { errs[i] = provideOne(ctx, log, image, build) })
	}
	providing.Wait()
	return errors.Join(errs...)
}

func provideOne(ctx context.Context, log io.Writer, image string, build bool) error {
	label, err := docker(ctx, "image", "inspect", `--format={{index .Config.Labels "`+standInLabel+`"}}`, image)
	present := err == nil
	if present && label == "" {
		return nil
	}
	fmt.Fprintln(log, "pulling", image)
	_, err = docker(ctx, "pull", "--quiet", image)
	switch {
	case err == nil:
		return nil
	case !unreachable(err):
		return fmt.Errorf("pull %s: %w", image, err)
	case build:
		fmt.Fprintf(log, "no registry can be reached (%v): building a stand-in for %s, for tests only\n", err, image)
		return buildStandIn(ctx, log, image)
	case present:
		fmt.Fprintf(log, "no registry can be reached (%v): using the stand-in for %s: %s\n", err, image, label)
		return nil
	}
	return fmt.Errorf("the image %s is not here, and no registry can be reached: %w; "+
		`"go run ./test/compose images" builds a stand-in, for tests only`, image, err)
}

// unreachable reports whether a pull failed before any registry answered.
func unreachable(err error) bool {
	for _, why := range []string{
		"no such host", "i/o timeout", "connection refused", "network is unreachable", "no route to host",
		"Temporary failure in name resolution", "server misbehaving", "TLS handshake timeout",
		"Client.Timeout exceeded", "context deadline exceeded",
	} {
		if strings.Contains(err.Error(), why) {
			return true
		}
	}
	return false
}
