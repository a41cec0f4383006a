package testenv

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortStaysOursWhetherAServerListensOrNot(t *testing.T) {
	p, err := takePort()
	require.NoError(t, err)
	defer p.release()
	requireKept(t, p)

	s, err := newRedis("--port", strconv.Itoa(p.number))
	require.NoError(t, err)
	s.port.release()
	s.port = p
	s.own(t)
	for range 2 {
		require.NoError(t, s.start())
		s.kill()
		requireKept(t, p)
	}
}

// requireKept fails if the kernel would give the port to somebody who asks for
// any free one, or lets somebody connect.
func requireKept(t *testing.T, p *port) {
	t.Helper()
	require.ErrorIs(t, accepts(t.Context(), p.addr()), syscall.ECONNREFUSED)
	exclusive := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		ctl := c.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 0)
		})
		if ctl != nil {
			return ctl
		}
		return err
	}}
	_, err := exclusive.Listen(context.Background(), "tcp4", p.addr())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}
