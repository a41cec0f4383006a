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
const hintTime = 3 * time.Second

// Check asks what is not a matter of one safe: whether a Consul is there at all. To
// another server that speaks HTTP each name is one that it does not have.
func (s *Store) Check(ctx context.Context) error {
	if s.Consul == nil {
		return nil
	}
	if _, err := s.Consul.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx)); err != nil {
		if e := (api.StatusError{}); errors.As(err, &e) && e.Code == 404 {
			return errNoConsul
		}
		return limited(err)
	}
	return nil
}

// limited says what Consul means by an answer before it was asked, to one connection
// too many, of which net/http makes an error without a reason.
func limited(err error) error {
	if strings.HasSuffix(err.Error(), "%!w(<nil>)") {
		return errors.New("rate limited: the agent takes no more connections from this address (its limits.http_max_conns_per_client)")
	}
	return err
}

// Hint says what may be wrong with a store that could not be used: that something else
// is at its address, or that nothing there can be reached, which a client may keep to
// itself. Silent says that no answer came in time. It is empty if there is nothing to
// say.
func (s *Store) Hint(ctx context.Context, silent bool) string {
	if s.Paxos != nil {
		if st := s.Paxos.Status(); silent && st.Connected() >= st.Majority {
			return fmt.Sprintf("a member that has started grants nothing for %v: wait, if a majority has", st.QuarantineAfterStart.Round(100*time.Millisecond))
		}
		return ""
	}
	return s.Address.reachable(ctx, s.addresses, silent)
}

// reachable says what is at the addresses, or why nothing there can be reached. It is
// empty if there is nothing to say.
func (a *Address) reachable(ctx context.Context, addresses []string, silent bool) string {
	if len(addresses) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, hintTime)
	defer cancel()
	troubles := []string{}
	for _, addr := range addresses {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			conn.Close()
			if stranger := a.instead(ctx, addr); stranger != "" || !silent {
				return stranger
			}
			return fmt.Sprintf("%s can be reached: is the URL right about what is there, and about TLS?", addr)
		}
		troubles = append(troubles, err.Error())
	}
	if !silent {
		return "" // the error says so itself
	}
	return strings.Join(troubles, "; ")
}
