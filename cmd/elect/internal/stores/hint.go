package stores

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"
)

// hintTime bounds the look for what is wrong.
const hintTime = 3 * time.Second

// reachable says what is at the addresses, or why nothing there can be reached. It is
// empty if there is nothing to say.
func (l *location) reachable(ctx context.Context, addresses []string, silent bool) string {
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
			if stranger := l.instead(ctx, addr); stranger != "" || !silent {
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
