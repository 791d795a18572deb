package memory

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// listener closes its connections when it is closed, like a machine that goes down.
type listener struct {
	net.Listener
	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func listen(at netip.AddrPort) (*listener, error) {
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("listening on %s for a simulated API server: %w", at, err)
	}
	return &listener{Listener: l, conns: map[net.Conn]bool{}}, nil
}

// Accept tracks the connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	l.conns[c] = true
	return &trackedConn{Conn: c, l: l}, nil
}

// Close closes the listener and all its connections. It may be repeated.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for c := range l.conns {
		_ = c.Close()
	}
	return l.Listener.Close()
}

type trackedConn struct {
	net.Conn
	l *listener
}

// Close stops tracking the connection.
func (c *trackedConn) Close() error {
	c.l.mu.Lock()
	delete(c.l.conns, c.Conn)
	c.l.mu.Unlock()
	return c.Conn.Close()
}
