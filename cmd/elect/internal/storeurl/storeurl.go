// Package storeurl turns the URL of a store into a store.
//
//	mem:                                        this process only
//	file:///directory                           processes of one host
//	etcd://host:port,host:port/prefix           etcds:// with TLS
//	consul://host:port/prefix                   consuls:// with TLS
//	redis://host:port/database                  rediss:// with TLS
//	redis://host:port,host:port/0?master=name   by sentinels
//	redis://host:port,host:port?cluster=true    a cluster
//	sqlite:///file                              processes of one host
//	postgres://user@host:port/database          postgresql:// as well
//	mysql://user@host:port/database             mariadb:// as well
//	paxos://own:port?peers=a:port,b:port&cluster=name   the candidates themselves
//
// Credentials come from the URL's user part or, better, since everybody on the
// host can read a command line, from the environment variables that the store's
// own tools use. Names of elections get the prefix and a slash in front; a prefix
// that itself begins with a slash has two: etcd://host//locks is "/locks/". In a
// database, table=name and schema=name say where the records are; the table is made
// when it is first needed and missing.
//
// No error and no string made here contains a user part, or any part of a URL
// that was not understood.
package storeurl

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/kv"
)

// An Address is the checked URL of a store.
type Address struct {
	// Kind is the scheme without TLS: "mem", "file", "etcd", "consul", "redis",
	// "sqlite", "postgres", "mysql".
	Kind  string
	shown string
	where *location
	open  opener
}

// An opener opens the store of a URL that was checked. ctx bounds the opening only.
type opener func(ctx context.Context, how purpose) (*Store, error)

// A purpose is what a store is opened for.
type purpose struct {
	reading bool         // and nothing else
	log     *slog.Logger // of a candidate; nil for everybody else
}

// String returns the URL without credentials and parameters.
func (a *Address) String() string { return a.shown }

// Join returns the store as Open does, for a candidate: where the candidates
// themselves are the store, this process becomes the member that the URL names, and
// log gets what is wrong between the members. ctx bounds the opening only.
func (a *Address) Join(ctx context.Context, log *slog.Logger) (*Store, error) {
	return a.opened(ctx, purpose{log: log})
}

// Observe returns the store as Open does, for those who only read: it creates nothing,
// and needs no permission to write. What is not there yet is vacant.
func (a *Address) Observe() (*Store, error) {
	return a.opened(context.Background(), purpose{reading: true})
}

// Open returns the store. It asks the store nothing, but an etcd to log the user
// in, if the URL or the environment names one.
func (a *Address) Open() (*Store, error) { return a.opened(context.Background(), purpose{}) }

func (a *Address) opened(ctx context.Context, how purpose) (*Store, error) {
	s, err := a.open(ctx, how)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.shown, err)
	}
	s.Address = a
	return s, nil
}

// A Store is an open store, with what is particular to its kind.
type Store struct {
	// KV is not embedded: it may have more methods than kv.Store, which a
	// campaign looks for (kv.Queue).
	KV      kv.Store
	Address *Address
	Backend
}

// Forget removes what the store keeps of a name beyond its last record, so that
// tokens grow over it: only for a name that was made up for one occasion. The
// name must be of lower-case letters, digits, "-" and ":".
func (s *Store) Forget(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.forget(ctx, name); err != nil {
		return fmt.Errorf("remove what is left of %q: %w", name, err)
	}
	return nil
}

// OldLocks returns the locks at a name that services had before, as far as they can be
// recognised: see package oldlock. There are none in a store that older locks do not
// use.
func (s *Store) OldLocks(ctx context.Context, name string) ([]oldlock.Lock, error) {
	locks, err := s.oldLocks(ctx, name)
	if err != nil {
		err = fmt.Errorf("look for old locks of %.80q: %w", name, err)
	}
	return locks, err
}

// A scheme is one kind of URL.
type scheme struct {
	names  []string // the second is the one with TLS
	alias  string   // of the first
	form   string   // for people
	params []string
	parse  func(l *location) (opener, error)
}

func schemes() []scheme {
	return []scheme{
		{names: []string{"mem"}, form: "mem:", parse: parseMem},
		{names: []string{"file"}, form: "file:///directory", params: []string{fileSystemParam}, parse: parseFile},
		{names: []string{"etcd", "etcds"}, form: "etcd://host:port[,host:port...]/prefix", params: append(tlsParams(), etcdParams()...), parse: parseEtcd},
		{names: []string{"consul", "consuls"}, form: "consul://host:port/prefix", params: append(tlsParams(), consulParams()...), parse: parseConsul},
		{names: []string{"redis", "rediss"}, form: "redis://host:port/database (several hosts with ?master=name or ?cluster=true)", params: append(tlsParams(), redisParams()...), parse: parseRedis},
		{names: []string{"sqlite"}, form: "sqlite:///file", params: sqliteParams(), parse: parseSQLite},
		{names: []string{"postgres"}, alias: "postgresql", form: "postgres://user@host:port/database", params: postgresParams(), parse: parsePostgres},
		{names: []string{"mysql"}, alias: "mariadb", form: "mysql://user@host:port/database", params: append(tlsParams(), mysqlParams()...), parse: parseMySQL},
		{names: []string{"paxos"}, form: "paxos://host:port?peers=host:port,host:port&cluster=name", params: paxosParams(), parse: parsePaxos},
	}
}

// Schemes returns the URL schemes that Parse accepts.
func Schemes() []string {
	names := []string{}
	for _, s := range schemes() {
		names = append(names, s.names...)
		if s.alias != "" {
			names = append(names, s.alias)
		}
	}
	return names
}

// Parse checks a URL. getenv looks up environment variables. It asks no store,
// but reads the certificates that the URL names.
func Parse(raw string, getenv func(string) string) (*Address, error) {
	name, rest, ok := strings.Cut(raw, ":")
	if !ok || !isScheme(name) {
		return nil, fmt.Errorf("the store is not a URL; use %s", forms(schemes()))
	}
	name = strings.ToLower(name)
	for _, s := range schemes() {
		if !slices.Contains(s.names, name) && (s.alias == "" || s.alias != name) {
			continue
		}
		a, err := s.address(name, rest, getenv)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w; use %s", name+":...", err, s.usage())
		}
		return a, nil
	}
	return nil, fmt.Errorf("store %s: unknown scheme %q; use %s", name+":...", name, forms(schemes()))
}

func (s scheme) address(name, rest string, getenv func(string) string) (*Address, error) {
	l, err := locate(rest)
	if err != nil {
		return nil, err
	}
	l.tls = len(s.names) > 1 && name == s.names[1]
	l.getenv, l.kind = getenv, s.names[0]
	for param, values := range l.query {
		switch {
		case !slices.Contains(s.params, param):
			return nil, fmt.Errorf("unknown parameter %s", quoteName(param))
		case len(values) > 1:
			return nil, fmt.Errorf("parameter %q is given twice", param)
		case values[0] == "": // a variable that is not set, perhaps
			return nil, fmt.Errorf("parameter %q is empty: give it a value, or leave it out", param)
		}
	}
	open, err := s.parse(l)
	if err != nil {
		return nil, err
	}
	return &Address{Kind: s.names[0], shown: name + ":" + l.String(), where: l, open: open}, nil
}

// usage says how to write a URL of the scheme.
func (s scheme) usage() string {
	if len(s.params) == 0 {
		return s.form
	}
	return s.form + ", parameters " + strings.Join(s.params, " ")
}

func forms(all []scheme) string {
	texts := []string{}
	for _, s := range all {
		form, _, _ := strings.Cut(s.form, " ")
		texts = append(texts, form)
	}
	return strings.Join(texts, ", ") + " (TLS: etcds, consuls, rediss)"
}

func isScheme(s string) bool {
	return s != "" && len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r) && r != '+' && r != '-'
	})
}

// quoteName quotes the name of a parameter, unless it may be something else.
func quoteName(name string) string {
	if isScheme(name) {
		return fmt.Sprintf("%q", name)
	}
	return "in the part after the question mark"
}
