package paxoskv_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/wire"
)

// Members of the releases so far understand these bytes, and no other ones.
func TestAHelloHasTheBytesThatItHad(t *testing.T) {
	a := testenv.NewAuthority(t)
	addr := testenv.FreeAddr(t)
	listener, err := tls.Listen("tcp", addr, a.Config("127.0.0.1"))
	require.NoError(t, err)
	defer listener.Close()
	client, err := paxoskv.New(&paxoskv.Options{Peers: []string{addr}, Cluster: "c", TLS: a.Config(), Round: time.Second, MaxTTL: time.Minute, Drift: 5})
	require.NoError(t, err)
	defer client.Close()
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))

	size := make([]byte, 4)
	_, err = io.ReadFull(conn, size)
	require.NoError(t, err)
	frame := make([]byte, binary.BigEndian.Uint32(size))
	_, err = io.ReadFull(conn, frame)
	require.NoError(t, err)
	rest, ok := bytes.CutPrefix(frame, []byte("\x01election/paxos\x00\x01\x00"))
	require.True(t, ok, "%q", frame)
	_, n := binary.Uvarint(rest) // the incarnation
	require.Equal(t, fmt.Sprintf("\x01c\x01%c%s\x80\xb0\x9d\xc2\xdf\x01\x80\x94\xeb\xdc\x03\x05", len(addr), addr), string(rest[n:]))
}

// A process with a certificate may send any bytes. The transport takes only those that are messages.
func TestAMemberCutsOffWhatSendsNoMessages(t *testing.T) {
	a := testenv.NewAuthority(t)
	addr, said := testenv.FreeAddr(t), &testenv.Speech{}
	opts := paxoskv.Options{ID: addr, Cluster: "c", TLS: a.Config("127.0.0.1"), Logger: slog.New(slog.NewTextHandler(said, nil))}
	member, err := paxoskv.New(&opts)
	require.NoError(t, err)
	defer member.Close()
	speak := func(p wire.Protocol) *wire.Node {
		n, err := wire.New(wire.Config{Protocol: p, Members: []string{addr}, MaxWait: time.Minute, Incarnation: rand.Uint64(), TLS: a.Config()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, n.Close()) })
		require.NoError(t, n.Listen(func(string, []byte) error { return nil }))
		return n
	}
	right := wire.Protocol{Name: "paxos", Version: 1, Terms: []wire.Term{
		wire.Text("cluster", "c"), wire.List("members", []string{addr}), wire.Span("longest TTL", time.Minute), wire.Span("round limit", time.Second), wire.Number("drift", 5, ""),
	}}
	speak(right).Send(addr, []byte("Pxxx"))
	says(t, said, "a message of kind 'P' is malformed")
	other := right
	other.Name = "group"
	speak(other)
	says(t, said, `it speaks the protocol \"group\", and the other \"paxos\"`)
}

func says(t *testing.T, said *testenv.Speech, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return bytes.Contains([]byte(said.String()), []byte(want)) }, 20*time.Second, 10*time.Millisecond, want)
}
