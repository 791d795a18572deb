package capi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
)

// Limits of the parts of a tunnel.
const (
	// maxHead is the maximum size of the head of the response that opens a WebSocket.
	maxHead = 16 << 10
	// maxControl is the maximum size of a control frame of SPDY. Its headers are compressed; the
	// library would accept gigabytes of them.
	maxControl = 1 << 10
)

var errMasked = errors.New("the API server sends WebSocket frames that are masked or compressed")

// framed follows what arrives through a tunnel: the head of a response, then frames of a WebSocket,
// whose content is frames of SPDY. It fails before a frame is read that takes more memory than its
// size.
type framed struct {
	net.Conn

	head   []byte // of the response, until its end
	opened bool   // whether a WebSocket has been opened
	other  bool   // whether something else follows the head

	socket  header // of a frame of the WebSocket
	payload uint64 // what is left of it
	control bool   // whether it is for the WebSocket itself

	spdy header
	data uint32 // what is left of a frame of SPDY
}

func (f *framed) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if invalid := f.add(p[:n]); invalid != nil {
		_ = f.Close()
		return 0, invalid
	}
	return n, err
}

func (f *framed) add(data []byte) error {
	if !f.opened && !f.other {
		var err error
		if data, err = f.addHead(data); err != nil {
			return err
		}
	}
	for len(data) > 0 && f.opened {
		if f.payload == 0 {
			var err error
			if data, err = f.addSocketHeader(data); err != nil {
				return err
			}
			continue
		}
		part := data[:min(uint64(len(data)), f.payload)]
		data, f.payload = data[len(part):], f.payload-uint64(len(part))
		if !f.control {
			if err := f.addSPDY(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// addHead returns what follows the head.
func (f *framed) addHead(data []byte) ([]byte, error) {
	known := len(f.head)
	f.head = append(f.head, data...)
	end := bytes.Index(f.head, []byte("\r\n\r\n"))
	switch {
	case end < 0 && len(f.head) <= maxHead:
		return nil, nil
	case end < 0 || end > maxHead:
		return nil, fmt.Errorf("the head of the API server's response is larger than %d bytes", maxHead)
	}
	f.opened = bytes.HasPrefix(f.head, []byte("HTTP/1.1 101 "))
	f.other = !f.opened
	f.head = nil
	return data[end+len("\r\n\r\n")-known:], nil
}

// addSocketHeader returns what follows the header of a frame, and nothing until it is complete.
func (f *framed) addSocketHeader(data []byte) ([]byte, error) {
	data = f.socket.add(data, 2)
	if len(f.socket.bytes) < 2 {
		return nil, nil
	}
	if f.socket.bytes[0]&0x70 != 0 || f.socket.bytes[1]&0x80 != 0 {
		return nil, errMasked
	}
	size, length := 2, uint64(f.socket.bytes[1])
	switch length {
	case 126:
		size = 4
	case 127:
		size = 10
	}
	data = f.socket.add(data, size)
	if len(f.socket.bytes) < size {
		return nil, nil
	}
	switch size {
	case 4:
		length = uint64(binary.BigEndian.Uint16(f.socket.bytes[2:]))
	case 10:
		length = binary.BigEndian.Uint64(f.socket.bytes[2:])
	}
	f.payload, f.control = length, f.socket.bytes[0]&0x08 != 0
	f.socket.bytes = f.socket.bytes[:0]
	return data, nil
}

// addSPDY follows the frames of SPDY.
func (f *framed) addSPDY(data []byte) error {
	for len(data) > 0 {
		if f.data > 0 {
			skipped := min(uint32(len(data)), f.data)
			data, f.data = data[skipped:], f.data-skipped
			continue
		}
		if data = f.spdy.add(data, 8); len(f.spdy.bytes) < 8 {
			return nil
		}
		f.data = binary.BigEndian.Uint32(f.spdy.bytes[4:]) & 0xffffff
		if isControl := f.spdy.bytes[0]&0x80 != 0; isControl && f.data > maxControl {
			return fmt.Errorf("the API server sends a control frame of %d bytes, more than %d", f.data, maxControl)
		}
		f.spdy.bytes = f.spdy.bytes[:0]
	}
	return nil
}

// header collects the bytes of a header that may arrive in pieces.
type header struct{ bytes []byte }

// add returns what follows the first size bytes.
func (h *header) add(data []byte, size int) []byte {
	n := min(len(data), max(0, size-len(h.bytes)))
	h.bytes = append(h.bytes, data[:n]...)
	return data[n:]
}
