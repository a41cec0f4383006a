package wire

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// Members returns the addresses of a cluster's members in the one form and order that
// all of them use: host:port with the host in lower case, in the order of the alphabet.
func Members(addrs []string) ([]lease.MemberID, error) {
	all := []lease.MemberID{}
	for _, addr := range addrs {
		m, err := Member(addr)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.Sort(all)
	switch {
	case len(all) == 0:
		return nil, errors.New("no members: name the address of each, host:port")
	case len(all) > lease.MaxMembers:
		return nil, fmt.Errorf("%d members, where %d are the most", len(all), lease.MaxMembers)
	case len(slices.Compact(slices.Clone(all))) < len(all):
		return nil, fmt.Errorf("a member is named twice in %q", list(all))
	}
	return all, nil
}

// Member returns the address of a member as Members does.
func Member(addr string) (lease.MemberID, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("member %q is not host:port", addr)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if host == "" || len(host) > 253 || strings.ContainsAny(host, ", /\\\"") || err != nil || number == 0 {
		return "", fmt.Errorf("member %q is not host:port, with a port from 1 to 65535", addr)
	}
	return lease.MemberID(net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(number, 10))), nil
}

// hostOf returns the host of a member's address.
func hostOf(member lease.MemberID) string {
	host, _, _ := net.SplitHostPort(string(member))
	return host
}

// list is the members for people, and as one writes them in a URL.
func list(members []lease.MemberID) string {
	all := []string{}
	for _, m := range members {
		all = append(all, string(m))
	}
	return strings.Join(all, ",")
}
