//go:build unix

package testenv

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// What is needed of HTTP/2 (RFC 9113) to lose the answers on one of the streams
// of a connection.
const (
	preface     = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeader = 9
	frameData   = 0
	flagEnd     = 1 // of a stream, in one direction
)

// streams follows the frames of a connection of HTTP/2, and notes what clients
// ask on streams that they keep open.
type streams struct {
	ways [2]frames // each is used by the goroutine of its direction

	mu    sync.Mutex
	begun bool
	http2 bool
	asked map[uint32][]byte // by stream, at most 4 KiB of each
}

// frames tells where the frames are in one direction of a connection.
type frames struct {
	begun bool
	http2 bool
	skip  int    // bytes to come before the next frame, or of it
	head  []byte // of the next frame, as far as it is known
	now   frame
}

type frame struct {
	stream uint32
	kind   byte
	flags  byte
	lost   bool
}

// pass returns what of data is to be forwarded: all but the data frames that the
// server sends on streams that are muted.
func (s *streams) pass(d direction, data []byte, muted func(asked []byte) bool) []byte {
	f := &s.ways[d]
	if !f.begun {
		f.begun, f.http2 = true, s.begin(d, data)
		if d == request {
			f.skip = len(preface)
		}
	}
	if !f.http2 {
		return data
	}
	kept := make([]byte, 0, len(data)+frameHeader)
	for len(data) > 0 {
		if f.skip == 0 {
			var head []byte
			if head, data = f.read(data); head == nil {
				break
			}
			f.now.lost = d == reply && f.now.kind == frameData && s.isMuted(f.now.stream, muted)
			if !f.now.lost {
				kept = append(kept, head...)
			}
			continue
		}
		part := data[:min(f.skip, len(data))]
		data = data[len(part):]
		f.skip -= len(part)
		if d == request {
			s.note(f.now, part)
		}
		if !f.now.lost {
			kept = append(kept, part...)
		}
	}
	return kept
}

// begin looks at the first data of a connection, and reports whether it is
// HTTP/2: then the client speaks first.
func (s *streams) begin(d direction, data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun, s.http2 = true, d == request && bytes.HasPrefix(data, []byte(preface))
	}
	return s.http2
}

// read takes the next frame's header from data, and returns it and the rest, or
// nil if it is not whole yet.
func (f *frames) read(data []byte) (head, rest []byte) {
	n := min(frameHeader-len(f.head), len(data))
	f.head = append(f.head, data[:n]...)
	if len(f.head) < frameHeader {
		return nil, nil
	}
	head, f.head = f.head, nil
	f.skip = int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	f.now = frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:]) &^ (1 << 31)}
	return head, data[n:]
}

// note takes down what the client asks. A request that ends its stream is the
// only one on it.
func (s *streams) note(f frame, part []byte) {
	if f.stream == 0 || f.kind != frameData || f.flags&flagEnd != 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = make(map[uint32][]byte)
	}
	asked := s.asked[f.stream]
	s.asked[f.stream] = append(asked, part[:min(len(part), 4<<10-len(asked))]...)
}

func (s *streams) isMuted(stream uint32, muted func(asked []byte) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked[stream]
	return asked != nil && muted(asked)
}
