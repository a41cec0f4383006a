package wire_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/electkv/election/internal/wire"
)

func FuzzHello(f *testing.F) {
	p := wire.Protocol{Name: "echo", Version: 1, Terms: []wire.Term{
		wire.Text("cluster", "c"), wire.List("members", []string{"a:1", "b:1"}), wire.Span("longest TTL", time.Minute), wire.Number("drift", 2, "‰"),
	}}
	bare := wire.Protocol{Name: "echo", Version: 1}
	f.Add(p.Hello("a:1", 1<<63))
	f.Add(p.Hello("", 0))
	f.Add(bare.Hello("a:1", 1))
	f.Add(wire.Protocol{Name: "echo", Version: 2, Terms: p.Terms}.Hello("a:1", 1))
	f.Add(wire.Protocol{Name: "paxos", Version: 1, Terms: p.Terms}.Hello("a:1", 1))
	f.Add([]byte("election/echo\x00\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, spoken := range []wire.Protocol{p, bare} {
			again, err := spoken.HelloAgain(b)
			if err == nil && !bytes.Equal(again, b) {
				t.Fatalf("%x is written again as %x", b, again)
			}
		}
	})
}
