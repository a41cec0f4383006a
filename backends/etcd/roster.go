package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/member"
	"github.com/electkv/election/kv"
)

// Members implements [kv.Roster]: a linearizable read of 500 keys, and reads of 500 more each
// as they were then. A member's safe is one key in every layout, with its record's text; a
// token is a revision, so tokens grow across all keys. The version is the revision of the
// first read.
func (s *Store) Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error) {
	start, err := s.membersStart(ctx, name)
	if err != nil {
		_, err = outcome(ctx, "list members of", name, kv.Record{}, err)
		return nil, 0, err
	}
	for {
		members, version, err := s.list(ctx, name, start, most)
		if errors.Is(err, rpctypes.ErrCompacted) { // while it was read
			continue
		}
		if err != nil {
			_, err = outcome(ctx, "list members of", name, kv.Record{}, err)
			return nil, 0, err
		}
		return members, version, nil
	}
}

// membersStart returns how the keys of all members of a roster begin.
func (s *Store) membersStart(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("a roster needs a name: %w", kv.ErrInvalid)
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return s.opts.Prefix + member.Prefix(name), s.unfit()
}

// list reads the keys of a roster, as they all were at one revision.
func (s *Store) list(ctx context.Context, name, start string, most int) (members []kv.Held, version uint64, err error) {
	var revision int64
	for key, end := start, clientv3.GetPrefixRangeEnd(start); ; {
		resp, err := s.client.Get(ctx, key, clientv3.WithRange(end), clientv3.WithLimit(member.Page), clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = resp.Header.Revision
		}
		for _, pair := range resp.Kvs {
			if len(members) >= most {
				return members, uint64(revision), nil
			}
			key = string(pair.Key) + "\x00"
			safeName, ok := strings.CutSuffix(strings.TrimPrefix(string(pair.Key), s.opts.Prefix), s.opts.Suffix)
			if !ok || !member.Within(name, safeName) {
				continue
			}
			sf := safe{base: string(pair.Key), start: string(pair.Key)}
			members = append(members, member.Listed(safeName, sf.decode(pair, line{})))
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return members, uint64(revision), nil
		}
	}
}

// AwaitMembers implements [kv.Roster] with a watch of all keys of the roster from the version
// on. It is opened by the client, for each call.
func (s *Store) AwaitMembers(ctx context.Context, name string, version uint64) error {
	start, err := s.membersStart(ctx, name)
	if err == nil {
		err = s.awaitChange(ctx, start, version)
	}
	_, err = outcome(ctx, "watch members of", name, kv.Record{}, err)
	return err
}

func (s *Store) awaitChange(ctx context.Context, start string, version uint64) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes := s.client.Watch(clientv3.WithRequireLeader(watching), start, clientv3.WithPrefix(), clientv3.WithRev(int64(version)+1)) //nolint:gosec // etcd's own
	for resp := range changes {
		if err := resp.Err(); err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // which is long after that version
			return err
		}
		if len(resp.Events) > 0 || resp.Err() != nil {
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errLost
}
