package storeurl

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// replyTime is how long a server has to answer a question about what it is.
const replyTime = 1500 * time.Millisecond

// What answers at an address: the kind of a store, or one of these.
const (
	unknown   = ""
	someHTTP  = "HTTP"
	someHTTP2 = "HTTP/2"
	someTLS   = "TLS"
)

// known says what people call a kind of server.
func known(kind string) string {
	switch kind {
	case "etcd":
		return "etcd"
	case "consul":
		return "Consul"
	case "redis":
		return "Redis"
	case "postgres":
		return "PostgreSQL"
	case "mysql":
		return "MySQL or MariaDB"
	}
	return "something that speaks " + kind
}

// instead says what answers at an address where the URL has a server of another kind,
// or one with TLS where that has none. It is empty where the right one answers.
func (l *location) instead(ctx context.Context, addr string) string {
	met := recognise(ctx, addr)
	secured := l.kind == "etcd" || l.kind == "consul" || l.kind == "redis" // from the first byte on, if at all
	switch {
	case met == unknown:
		return fmt.Sprintf("%s can be reached: is it %s that is there?", addr, known(l.kind))
	case met == someTLS && secured && l.tls, met == someHTTP2 && l.kind == "etcd":
		return ""
	case met == someTLS && secured:
		return fmt.Sprintf("what is at %s wants TLS: use %ss://", addr, l.kind)
	case met == l.kind && secured && l.tls:
		return fmt.Sprintf("%s is at %s without TLS: use %s://", known(met), addr, l.kind)
	case met == l.kind:
		return ""
	}
	there := fmt.Sprintf("%s is at %s, where the URL has %s", known(met), addr, known(l.kind))
	if slices.Contains(Schemes(), met) {
		there += fmt.Sprintf(": use %s://, or the address of %s", met, known(l.kind))
	}
	return there
}

// recognise asks what is at an address which kind of server it is, in ways that no
// server takes amiss.
func recognise(ctx context.Context, addr string) string {
	// Redis takes the line for a command with an argument too many, PostgreSQL hangs
	// up, and MySQL has spoken first.
	reply := ask(ctx, addr, "GET /v1/status/leader HTTP/1.0\r\n\r\n")
	switch kind := spoken(reply); {
	case kind != someHTTP:
		if kind != unknown {
			return kind
		}
	case bytes.Contains(reply, []byte("HTTP request to an HTTPS server")):
		return someTLS
	case bytes.HasPrefix(reply[min(9, len(reply)):], []byte("200")) && bytes.Contains(reply, []byte("\r\n\r\n\"")):
		return "consul"
	case bytes.Contains(ask(ctx, addr, "GET /version HTTP/1.0\r\n\r\n"), []byte(`"etcdserver"`)):
		return "etcd"
	default:
		return someHTTP
	}
	// PostgreSQL answers this question, whether TLS is to be had, with one byte.
	if reply := ask(ctx, addr, "\x00\x00\x00\x08\x04\xd2\x16\x2f"); len(reply) == 1 && (reply[0] == 'S' || reply[0] == 'N') {
		return "postgres"
	}
	if handshakes(ctx, addr) {
		return someTLS
	}
	return unknown
}

// spoken returns what it is that speaks so.
func spoken(b []byte) string {
	switch {
	case len(b) < 5:
		return unknown
	case b[0] == '-' || b[0] == '+':
		return "redis"
	case bytes.HasPrefix(b, []byte("HTTP/1.")):
		return someHTTP
	case b[0] == 0x15 && b[1] == 3: // an alert
		return someTLS
	case b[3] == 4 && b[0] == 0: // the settings with which HTTP/2 begins
		return someHTTP2
	case b[3] == 0 && (b[4] == 10 || b[4] == 255): // the version of the handshake, or a refusal
		return "mysql"
	}
	return unknown
}

// ask returns the beginning of what is answered to a question.
func ask(ctx context.Context, addr, question string) []byte {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, question); err != nil {
		return nil
	}
	reply := make([]byte, 2048)
	n := 0
	for n < len(reply) {
		m, err := conn.Read(reply[n:])
		n += m
		if err != nil || n == 1 || reply[0] != 'H' { // only HTTP says more
			break
		}
	}
	return reply[:n]
}

// handshakes reports whether a server speaks TLS, whoever it is.
func handshakes(ctx context.Context, addr string) bool {
	conn, err := dial(ctx, addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // nothing is sent
	return secured.HandshakeContext(ctx) == nil
}

// dial returns a connection that lasts for one question.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: replyTime}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(replyTime)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return conn, conn.SetDeadline(until)
}
