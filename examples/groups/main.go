// Example groups has a leader in each part of the network that is whole. Its processes find each
// other by a roster in Redis, and go on as a group without it. Make certificates, and start one
// process for each:
//
//	elect peers init --dir certs --here 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003
//	go run ./examples/groups -id 127.0.0.1:7001 -certs certs/127.0.0.1_7001
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"

	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/group"
	"github.com/electkv/election/kv"
)

func main() {
	addr := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	id := flag.String("id", "127.0.0.1:7001", "this process's address, as the others have it")
	certs := flag.String("certs", ".", "folder with its elect.pem and ca.pem")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: *addr, ContextTimeoutEnabled: true})
	defer client.Close()
	files := &group.Files{Cert: filepath.Join(*certs, "elect.pem"), CA: filepath.Join(*certs, "ca.pem")}
	opts := &group.Options{ID: *id, Peers: []string{*id}, Cluster: "cache", GetTLS: files.TLS, Logger: slog.Default()}
	if err := run(ctx, rediskv.New(client, nil), opts, warm); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run is in a group with those that the roster lists, until ctx ends.
func run(ctx context.Context, store kv.Store, opts *group.Options, lead func(context.Context, group.Group) error) error {
	m, err := group.New(opts)
	if err != nil {
		return err
	}
	defer m.Close()
	ctx, stop := context.WithCancelCause(ctx)
	var roster sync.WaitGroup
	defer roster.Wait()
	defer stop(nil)
	roster.Go(func() { stop(follow(ctx, store, "cache", opts, m)) })
	return m.Run(ctx, lead)
}

// warm is the work of a group's leader.
func warm(ctx context.Context, g group.Group) error {
	fmt.Println("warm the caches of", g.Members)
	<-ctx.Done()
	return nil
}
