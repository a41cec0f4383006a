// Command compose starts and stops the servers of docker-compose.yml, and plays
// failovers on them: see "make up", "make cluster", "make down" and "make
// test/compose".
//
//	go run ./test/compose images      pulls the images, or builds stand-ins where no registry can be reached;
//	                                  "images IMAGE..." does so for images that other projects need
//	go run ./test/compose up          starts one server of each kind, and waits until they are healthy
//	go run ./test/compose cluster     starts the clusters besides
//	go run ./test/compose failovers   plays failovers on the clusters, and judges them
//	go run ./test/compose quick       plays one on each cluster, and the demo on each other server
//	go run ./test/compose down        stops all, and drops what they hold
//
// It has to be called in the root of the repository. Compose is "docker compose" or
// docker-compose, whichever there is, or what the variable COMPOSE says.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compose:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 1 && args[0] == "images" {
		return provide(ctx, os.Stderr, args[1:], true)
	}
	if len(args) != 1 {
		return errors.New("call it with one of images, up, cluster, failovers, quick and down")
	}
	do, known := map[string]func(context.Context, *project) error{
		"images": func(ctx context.Context, p *project) error {
			return provide(ctx, p.log, p.file.images("cluster"), true)
		},
		"up":        func(ctx context.Context, p *project) error { return p.up(ctx, "") },
		"cluster":   func(ctx context.Context, p *project) error { return p.up(ctx, "cluster") },
		"failovers": failovers,
		"quick":     quick,
		"down":      func(ctx context.Context, p *project) error { return p.down(ctx) },
	}[args[0]]
	if !known {
		return fmt.Errorf("%q is none of images, up, cluster, failovers, quick and down", args[0])
	}
	p, err := openProject(ctx, os.Stderr)
	if err != nil {
		return err
	}
	return do(ctx, p)
}
