package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// MaxMessage is the size of the largest message.
const MaxMessage = 1 << 20

// maxHello bounds what is read of a peer that is not yet known.
const maxHello = 16 << 10

// A frame is its length, four bytes, its kind, one byte, and a body. The length counts
// kind and body.
type kind byte

const (
	kindHello   kind = 1
	kindRefusal kind = 2
	kindAlive   kind = 3
	kindMessage kind = 4
)

const headSize = 4

// appendFrame appends a frame to b.
func appendFrame(b []byte, k kind, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(body)))
	return append(append(b, byte(k)), body...)
}

// readFrame reads a frame of at most limit bytes. Memory grows with what has arrived,
// not with what was announced.
func readFrame(r io.Reader, limit int) (kind, []byte, error) {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	size := int64(binary.BigEndian.Uint32(head))
	if size == 0 || size > int64(limit)+1 {
		return 0, nil, fmt.Errorf("a frame of %d bytes, where 1 to %d are right", size, limit+1)
	}
	frame, err := io.ReadAll(io.LimitReader(r, size))
	if err == nil && int64(len(frame)) < size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, nil, err
	}
	return kind(frame[0]), frame[1:], nil
}
