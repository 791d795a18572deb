package memory

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/portforward"
)

// overWebSocket reports whether a client asks for a WebSocket, as Cluster API does first. The
// backend knows only SPDY.
func overWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// unwrapSocket serves the SPDY inside of a WebSocket with a handler for SPDY.
func unwrapSocket(next http.Handler) http.Handler {
	return websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			if !slices.Contains(c.Protocol, portforward.WebsocketsSPDYTunnelingPortForwardV1) {
				return errors.New("no supported protocol")
			}
			c.Protocol = []string{portforward.WebsocketsSPDYTunnelingPortForwardV1}
			return nil
		},
		Handler: func(c *websocket.Conn) {
			c.PayloadType = websocket.BinaryFrame
			r := c.Request().Clone(c.Request().Context())
			r.Method = http.MethodPost
			r.Header.Set("Upgrade", "SPDY/3.1")
			r.Header.Set("X-Stream-Protocol-Version", portforward.PortForwardV1Name)
			next.ServeHTTP(&unwrapped{conn: c, header: http.Header{}}, r)
		},
	}
}

// unwrapped is a response whose connection has been upgraded already.
type unwrapped struct {
	conn   net.Conn
	header http.Header
}

func (u *unwrapped) Header() http.Header             { return u.header }
func (*unwrapped) WriteHeader(int)                   {}
func (*unwrapped) Write(content []byte) (int, error) { return len(content), nil }

// Hijack returns the connection.
func (u *unwrapped) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return u.conn, bufio.NewReadWriter(bufio.NewReader(u.conn), bufio.NewWriter(u.conn)), nil
}
