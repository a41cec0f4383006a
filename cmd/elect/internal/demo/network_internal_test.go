//go:build unix

package demo

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// echo is a server that says again what it hears.
func echo(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return l
}

func TestTheNetworkOfAMeetingHoldsWhatItsPartsDoNotReach(t *testing.T) {
	n, err := openNetwork(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, n.close()) }()
	server := echo(t)
	n.place(0, server.Addr().String())
	n.place(1, server.Addr().String())
	call := func(from, to int) net.Conn {
		conn, err := callOver(t.Context(), n.addr(), from, to)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	says := func(conn net.Conn, word string) {
		_, err := conn.Write([]byte(word))
		require.NoError(t, err)
	}
	hears := func(conn net.Conn, within time.Duration) (string, error) {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(within)))
		word := make([]byte, 3)
		k, err := conn.Read(word)
		return string(word[:k]), err
	}
	requireHears := func(conn net.Conn, want string) {
		t.Helper()
		word, err := hears(conn, 30*time.Second)
		require.NoError(t, err)
		require.Equal(t, want, word)
	}
	self, other := call(0, 0), call(0, 1)
	says(self, "one")
	says(other, "two")
	requireHears(self, "one")
	_, err = hears(other, 100*time.Millisecond)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "nobody reaches anybody at first")

	n.part([][]int{{0, 1}})
	requireHears(other, "two")
	n.part([][]int{{0}, {1}})
	says(other, "six")
	_, err = hears(other, 100*time.Millisecond)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	n.part([][]int{{1, 0}})
	requireHears(other, "six")

	server.Close() // it is killed
	_, err = hears(call(0, 1), 30*time.Second)
	require.ErrorIs(t, err, io.EOF)
}
