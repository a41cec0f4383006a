package peers

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// address returns a member's address as all members write it: host:port, in lower case.
func address(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	switch {
	case err != nil && strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "["):
		return "", fmt.Errorf("member %q: write an IPv6 address in brackets, such as [fd00::1]:7000", s)
	case err != nil:
		return "", fmt.Errorf("member %q has no port: write host:port, such as a.example:7000", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("member %q: its port is not a number from 1 to 65535", s)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		if host, err = hostName(host); err != nil {
			return "", fmt.Errorf("member %q: %w", s, err)
		}
	case ip.Zone() != "":
		return "", fmt.Errorf("member %q: a certificate cannot name a zone (%%%s): use an address that is good on all hosts", s, ip.Zone())
	case ip.IsUnspecified():
		return "", fmt.Errorf("member %q: the others cannot reach %s: write the address at which they do", s, ip)
	default:
		host = ip.Unmap().String()
	}
	return net.JoinHostPort(host, strings.TrimLeft(port, "0")), nil
}

// hostName returns the name of a host in lower case.
func hostName(s string) (string, error) {
	s = strings.ToLower(s)
	labels := strings.Split(s, ".")
	switch last := labels[len(labels)-1]; {
	case s == "":
		return "", errors.New("the host is empty")
	case last == "":
		return "", errors.New("write the host without the dot at its end")
	case strings.Trim(last, "0123456789") == "":
		return "", errors.New("the host is neither a name nor an IP address")
	case len(s) > 253:
		return "", fmt.Errorf("the host has %d letters, where 253 are the most", len(s))
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || label[0] == '-' {
			return "", errors.New("the host is not a name of letters, digits, dots and hyphens")
		}
	}
	return s, nil
}

// hostOf returns the host of a member's address.
func hostOf(address string) string {
	host, _, _ := net.SplitHostPort(address)
	return host
}
