//go:build linux

package faults

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// A muter stands between candidates and an etcd server. It passes everything on,
// message by message. While it is mute, nothing that the server says on watches
// arrives, and all other answers do.
type muter struct {
	addr  string
	mute  atomic.Bool
	lost  atomic.Int64 // messages
	calls *grpc.ClientConn
}

// newMuter starts a muter in front of the server at addr, which ends with the
// test.
func newMuter(t testing.TB, addr string) *muter {
	calls, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	m := &muter{addr: listener.Addr().String(), calls: calls}
	server := grpc.NewServer(grpc.ForceServerCodec(asIs{}), grpc.UnknownServiceHandler(m.pass))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, errors.Join(<-served, calls.Close()))
	})
	return m
}

// pass passes one call on.
func (m *muter) pass(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	sent, _ := metadata.FromIncomingContext(client.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(client.Context(), sent))
	defer cancel()
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	server, err := m.calls.NewStream(ctx, both, method, grpc.ForceCodec(asIs{}))
	if err != nil {
		return err
	}
	go func() {
		var message []byte
		for client.RecvMsg(&message) == nil && server.SendMsg(&message) == nil {
		}
		_ = server.CloseSend() // it may have ended, as the other way tells
	}()
	for {
		var message []byte
		if err := server.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if m.mute.Load() && method == "/etcdserverpb.Watch/Watch" {
			m.lost.Add(1)
			continue
		}
		if err := client.SendMsg(&message); err != nil {
			return err
		}
	}
}

// asIs leaves messages as they are.
type asIs struct{}

func (asIs) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (asIs) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (asIs) Name() string                       { return "proto" }
