package confined

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxFrame bounds what either side sends at once. It exceeds the archive of any chart.
const maxFrame = 96 << 20

// kind is the kind of a message.
type kind byte

const (
	requests kind = iota + 1
	calls
	answers
	returns
	fails
)

var errTooLarge = errors.New("a message is too large")

func send(w *bufio.Writer, k kind, data []byte) error {
	var head [5]byte
	head[0] = byte(k)
	binary.BigEndian.PutUint32(head[1:], uint32(len(data)))
	if len(data) > maxFrame {
		return fmt.Errorf("%w: %d bytes", errTooLarge, len(data))
	}
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Flush()
}

func receive(r io.Reader, limit uint32) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > limit {
		return 0, nil, fmt.Errorf("%w: %d bytes", errTooLarge, size)
	}
	data := make([]byte, size)
	_, err := io.ReadFull(r, data)
	return kind(head[0]), data, err
}
