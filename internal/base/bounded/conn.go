package bounded

import (
	"net"
	"sync/atomic"
	"time"
)

// Conn limits how much a peer may send on a connection, and for how long, for libraries that make
// their own requests. It closes the connection at both limits.
func Conn(to net.Conn, l Limits) net.Conn {
	c := &conn{Conn: to, limits: l, timer: time.AfterFunc(l.Timeout, func() { _ = to.Close() })}
	c.left.Store(l.Body)
	return c
}

type conn struct {
	net.Conn

	limits Limits
	left   atomic.Int64
	timer  *time.Timer
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left.Add(int64(-n)) < 0 {
		_ = c.Close()
		return 0, &TooLargeError{Peer: c.limits.Peer, Limit: c.limits.Body}
	}
	return n, err
}

func (c *conn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}
