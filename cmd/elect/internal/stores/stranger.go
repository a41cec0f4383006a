package stores

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"
)

// replyTime is how long a server has to answer a question about what it is.
const replyTime = 1500 * time.Millisecond

// What answers at an address: the name of a kind of store, or one of these.
const (
	unknown   = ""
	someHTTP  = "HTTP"
	someHTTP2 = "HTTP/2"
	someTLS   = "TLS"
)

// instead says what answers at an address where the URL has a server of another kind,
// or one with TLS where that has none. It is empty where the right one answers.
func (l *location) instead(ctx context.Context, addr string) string {
	own, met := l.kind, recognise(ctx, addr)
	secured := own.secured != "" // from the first byte on, if at all
	switch {
	case met == unknown:
		return fmt.Sprintf("%s can be reached: is it %s that is there?", addr, own.called)
	case met == someTLS && secured && l.tls, met == someHTTP2 && own.onlyHTTP2:
		return ""
	case met == someTLS && secured:
		return fmt.Sprintf("what is at %s wants TLS: use %s://", addr, own.secured)
	case met == own.name && secured && l.tls:
		return fmt.Sprintf("%s is at %s without TLS: use %s://", own.called, addr, own.name)
	case met == own.name:
		return ""
	}
	for _, k := range kinds() {
		if k.name == met {
			return fmt.Sprintf("%s is at %s, where the URL has %s: use %s://, or the address of %s", k.called, addr, own.called, met, own.called)
		}
	}
	return fmt.Sprintf("something that speaks %s is at %s, where the URL has %s", met, addr, own.called)
}

// recognise asks what is at an address which kind of server it is, in ways that no
// server takes amiss.
func recognise(ctx context.Context, addr string) string {
	reply := ask(ctx, addr, "GET /v1/status/leader HTTP/1.0\r\n\r\n")
	met := spoken(reply)
	if met == someTLS || met == someHTTP2 {
		return met
	}
	for _, k := range kinds() {
		if k.answers != nil && k.answers(ctx, addr, reply) {
			return k.name
		}
	}
	if met == unknown && handshakes(ctx, addr) {
		return someTLS
	}
	return met
}

// spoken returns the protocol of a reply, if it is one that several servers speak.
func spoken(reply []byte) string {
	switch {
	case len(reply) < 5:
		return unknown
	case bytes.HasPrefix(reply, []byte("HTTP/1.")) && bytes.Contains(reply, []byte("HTTP request to an HTTPS server")):
		return someTLS
	case bytes.HasPrefix(reply, []byte("HTTP/1.")):
		return someHTTP
	case reply[0] == 0x15 && reply[1] == 3: // an alert
		return someTLS
	case reply[3] == 4 && reply[0] == 0: // the settings with which HTTP/2 begins
		return someHTTP2
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
