//go:build unix

package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// ask sends a Redis or a sentinel one command, on a connection of its own, and
// returns the reply: a string, an int64, a []any of these, or nil. An error that
// the server replies is an error.
//
// This package speaks the protocol itself because every backend's tests import
// it: with a client's module, it would raise that module's version for the users
// of all the others.
func (s *Server) ask(ctx context.Context, command ...string) (any, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(conn, resp(command)); err != nil {
		return nil, err
	}
	answer, err := readReply(bufio.NewReader(conn))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", s.name, strings.Join(command, " "), err)
	}
	return answer, nil
}

// askText is ask, for a command whose reply is text.
func (s *Server) askText(ctx context.Context, command ...string) (string, error) {
	answer, err := s.ask(ctx, command...)
	if err != nil {
		return "", err
	}
	text, ok := answer.(string)
	if !ok {
		return "", fmt.Errorf("%s %s: the reply is %v, not text", s.name, strings.Join(command, " "), answer)
	}
	return text, nil
}

// resp returns a command as RESP has it: an array of bulk strings.
func resp(command []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String()
}

// readReply reads one reply of version 2 of RESP, which is what a server speaks
// until a client asks for another.
func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line is no reply")
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	size, err := strconv.Atoi(rest)
	if err != nil {
		return nil, fmt.Errorf("%q is no reply", line)
	}
	switch {
	case size < 0:
		return nil, nil //nolint:nilnil // RESP's null
	case line[0] == '$':
		text := make([]byte, size+len("\r\n"))
		_, err := io.ReadFull(r, text)
		return string(text[:size]), err
	case line[0] == '*':
		list := make([]any, size)
		for i := range list {
			if list[i], err = readReply(r); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("%q is no reply", line)
}

// list returns a reply's elements, none if it is no array.
func list(reply any) []any {
	elements, _ := reply.([]any)
	return elements
}

// fields returns an array of names and values, by name.
func fields(reply any) map[string]any {
	elements := list(reply)
	byName := make(map[string]any, len(elements)/2)
	for i := 0; i+1 < len(elements); i += 2 {
		byName[fmt.Sprint(elements[i])] = elements[i+1]
	}
	return byName
}
