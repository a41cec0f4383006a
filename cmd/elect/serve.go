package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/cmd/elect/internal/page"
	"github.com/electkv/election/cmd/elect/internal/stores"
)

// defaultListen is where the page is: "elec" on the keys of a telephone.
const (
	defaultListen = "127.0.0.1:3532"
	anyPort       = "127.0.0.1:0"
)

// errInUse is the end of the error of an address at which something else listens.
var errInUse = errors.New("the port is in use: use another, or port 0 for any that is free")

const serveLong = `Serve a page that shows elections live: who leads, who is next, a timeline of
who led when, how each term ended, and the candidates that keep a roster (elect run
--roster). It needs a browser and nothing else.

Without a NAME it shows all elections of the store, up to 1,000, and looks every few
seconds whether there are more. In etcd and Consul these are the ones below the
prefix in the URL. --prefix narrows the list, in every store. etcd removes the record
of a vacant election, so one that is vacant at the start is not found. Redis is listed by
SCAN, and its user needs the permission for it. A store that is only its members
(paxos) cannot be listed: give NAMEs.

The page only reads, and so does elect serve: it writes nothing to the store. It has no
authentication. By default only this host can open it. The same is at /api/elections,
as JSON.

Exit status: 0 after SIGINT or SIGTERM, 125 if elect failed.`

func newServe(s *settings) *cobra.Command {
	o := outlook{settings: s}
	var listen string
	cmd := &cobra.Command{
		Use:               "serve [flags] [NAME...]",
		Short:             "Serve a page that shows elections live",
		Long:              serveLong,
		Example:           "  elect serve\n  elect serve --prefix team-a/\n  elect serve billing nightly",
		Args:              o.args,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, names []string) error {
			log, err := s.logger()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			l, err := listenAt(ctx, listen)
			if err != nil {
				return err
			}
			defer l.Close()
			c, store, err := o.open(ctx, cmd.ErrOrStderr(), log, names)
			if err != nil {
				return unlessDone(ctx, err)
			}
			defer store.Close()
			defer c.Close()
			announcePage(cmd.OutOrStdout(), log, l)
			return page.New(c, store.Address.String(), time.Minute).Serve(ctx, l)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "`ADDRESS` of the page, host:port; port 0 is any that is free")
	complete(cmd, "listen", cobra.ShellCompDirectiveNoFileComp)
	o.flags(cmd)
	return cmd
}

// An outlook is which elections are shown: those that are named, or all that the store lists.
type outlook struct {
	*settings
	prefix string
}

func (o *outlook) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.prefix, "prefix", "", "only the elections whose names begin with `PREFIX`")
	complete(cmd, "prefix", cobra.ShellCompDirectiveNoFileComp)
}

// args wants names of elections, or none.
func (o *outlook) args(cmd *cobra.Command, names []string) error {
	if len(names) == 0 {
		return nil
	}
	if o.prefix != "" {
		return errors.New("NAME and --prefix exclude each other: name elections, or list those that begin with PREFIX")
	}
	return someNames(cmd, names)
}

// open begins to follow the elections. A store that cannot be used is an error at once.
func (o *outlook) open(ctx context.Context, out io.Writer, log *slog.Logger, names []string) (*chronicle.Chronicle, *stores.Store, error) {
	store, err := o.observe(out)
	if err != nil {
		return nil, nil, err
	}
	o.warn(store.Address, log)
	if err := o.check(ctx, store, names); err != nil {
		store.Close()
		return nil, nil, err
	}
	c := chronicle.New(store.KV)
	c.Follow(names...)
	if len(names) == 0 {
		c.Search(o.lister(store))
	}
	c.ReadRosters()
	return c, store, nil
}

func (o *outlook) check(ctx context.Context, store *stores.Store, names []string) error {
	if len(names) > chronicle.Most {
		return fmt.Errorf("%d elections are named; use at most %d", len(names), chronicle.Most)
	}
	if err := probe(ctx, store, append(names, "name")[0]); err != nil || len(names) > 0 {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %v", probeTime))
	defer cancel()
	_, _, err := store.Elections(bounded, o.prefix, 1)
	if bounded.Err() != nil && ctx.Err() == nil {
		return nil // there is much to look through, or trouble that the page will tell of
	}
	return err
}

func (o *outlook) lister(store *stores.Store) chronicle.Lister {
	return func(ctx context.Context, most int) ([]string, bool, error) {
		return store.Elections(ctx, o.prefix, most)
	}
}

// listenAt listens at an address of this host.
func listenAt(ctx context.Context, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("listen at %q, which is no address: use host:port, such as %s, or :3532 for all networks", address, defaultListen)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = errInUse
	}
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", address, err)
	}
	return l, nil
}

// announcePage says where the page is, and warns if others than this host can open it.
func announcePage(out io.Writer, log *slog.Logger, l net.Listener) {
	addr, ok := l.Addr().(*net.TCPAddr)
	if ok && !addr.IP.IsLoopback() {
		log.Warn("others than this host can open the page, which asks for no password: they see who leads, and the values that leaders and candidates publish", "listen", addr.String())
		if addr.IP.IsUnspecified() {
			addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: addr.Port}
		}
	}
	fmt.Fprintf(out, "http://%s\n", addr)
}
