// Example etcd leads on etcd until it is interrupted. Start it a few times, and
// stop the one that leads:
//
//	make up
//	go run ./examples/etcd
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
)

func main() {
	addr := flag.String("addr", cmp.Or(os.Getenv("ETCDCTL_ENDPOINTS"), "127.0.0.1:2379"), "addresses of etcd, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	client, err := clientv3.New(etcdkv.Quiet(clientv3.Config{
		Endpoints:            strings.Split(addr, ","),
		DialKeepAliveTime:    10 * time.Second, // so that a dead connection is noticed
		DialKeepAliveTimeout: 5 * time.Second,
	}))
	if err != nil {
		return err
	}
	defer client.Close()

	store := etcdkv.New(client, &etcdkv.Options{Prefix: "examples/"})
	candidate, err := election.New(store, "etcd", &election.Options{Logger: slog.Default()})
	if err != nil {
		return err
	}
	return candidate.Run(ctx, lead)
}

// lead does what only one process may do, and returns soon after ctx has ended.
func lead(ctx context.Context, term *election.Term) error {
	fmt.Println("leading with token", term.Token())
	<-ctx.Done()
	fmt.Println("stopped:", context.Cause(ctx))
	return nil
}
