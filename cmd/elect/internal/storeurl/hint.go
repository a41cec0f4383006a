package storeurl

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"
)

// hintTime bounds the look for what is wrong.
const hintTime = time.Second

// Check asks what is not a matter of one safe: whether a Consul is there at all. To
// another server that speaks HTTP each name is one that it does not have.
func (s *Store) Check(ctx context.Context) error {
	if s.Consul == nil {
		return nil
	}
	if _, err := s.Consul.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx)); err != nil {
		if e := (api.StatusError{}); errors.As(err, &e) && e.Code == 404 {
			return errors.New("what answers there is no Consul: it does not know /v1/status/leader")
		}
		return err
	}
	return nil
}

// Hint says what may be wrong with a store that gives no answer: whether its hosts can
// be reached, which its client may keep to itself. It is empty if there is nothing to
// say.
func (s *Store) Hint(ctx context.Context) string {
	if s.Paxos != nil {
		if st := s.Paxos.Status(); st.Connected() >= st.Majority {
			return fmt.Sprintf("a member that has started grants nothing for %v: wait, if a majority has", st.QuarantineAfterStart.Round(100*time.Millisecond))
		}
		return ""
	}
	if len(s.addresses) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	troubles := []string{}
	for _, addr := range s.addresses {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			conn.Close()
			return fmt.Sprintf("%s can be reached: is the URL right about what is there, and about TLS?", addr)
		}
		troubles = append(troubles, err.Error())
	}
	return strings.Join(troubles, "; ")
}
