package wire

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Members returns the addresses of members in the one form and order that all of them use:
// host:port with the host in lower case, in the order of the alphabet.
func Members(addrs []string) ([]string, error) {
	all := []string{}
	for _, addr := range addrs {
		m, err := Member(addr)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, errors.New("no members: name the address of each, host:port")
	}
	slices.Sort(all)
	for i, m := range all[1:] {
		if m == all[i] {
			return nil, fmt.Errorf("member %q is named twice", m)
		}
	}
	return all, nil
}

// Member returns the address of a member as Members does.
func Member(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("member %q is not host:port", addr)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if host == "" || len(host) > 253 || strings.ContainsAny(host, ", /\\\"") || err != nil || number == 0 {
		return "", fmt.Errorf("member %q is not host:port, with a port from 1 to 65535", addr)
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(number, 10)), nil
}

// hostOf returns the host of a member's address.
func hostOf(member string) string {
	host, _, _ := net.SplitHostPort(member)
	return host
}
