//go:build unix

package testenv

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/electkv/election/internal/testenv/install"
)

func newRedis(args ...string) (*Server, error) {
	path, err := install.Redis()
	if err != nil {
		return nil, err
	}
	s, err := newServer("redis", path, redisHealthy)
	if err != nil {
		return nil, err
	}
	s.args = append([]string{
		"--bind", "127.0.0.1",
		"--protected-mode", "no", // which would refuse the hosts of a Network
		"--port", strconv.Itoa(s.port.number),
		"--dir", s.dataDir(),
		"--save", "",
		"--appendonly", "yes",
		"--appendfsync", "no",
	}, args...)
	return s, nil
}

// redisHealthy succeeds once Redis answers PING, or wants a password first.
func redisHealthy(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(answer, "+PONG") || strings.HasPrefix(answer, "-NOAUTH") {
		return nil
	}
	return fmt.Errorf("redis answers %q", strings.TrimSpace(answer))
}
