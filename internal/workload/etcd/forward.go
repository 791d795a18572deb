package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // The types of client-go's dialer.
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
)

// clientPort is where members listen for clients.
const clientPort = "2379"

// forward connects to etcd in a Pod through the API server.
func forward(ctx context.Context, config *rest.Config, pod string) (net.Conn, error) {
	at, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	at = at.JoinPath("api/v1/namespaces", metav1.NamespaceSystem, "pods", pod, "portforward")
	dialer, err := portforward.NewSPDYOverWebsocketDialer(at, config)
	if err != nil {
		return nil, err
	}
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := openStream(dialer)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() { // The dialer has no context: it ends by itself.
			if r := <-done; r.conn != nil {
				_ = r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// openStream opens the two streams that forward one connection.
func openStream(dialer httpstream.Dialer) (net.Conn, error) {
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	var stream httpstream.Stream
	for _, kind := range []string{corev1.StreamTypeError, corev1.StreamTypeData} {
		headers := http.Header{}
		headers.Set(corev1.PortHeader, clientPort)
		headers.Set(corev1.PortForwardRequestIDHeader, "0")
		headers.Set(corev1.StreamType, kind)
		if stream, err = conn.CreateStream(headers); err != nil {
			return nil, errors.Join(fmt.Errorf("forwarding a port: %w", err), conn.Close())
		}
	}
	return &forwarded{Stream: stream, conn: conn}, nil
}

// forwarded is a forwarded connection. It has no deadlines: requests have contexts, and keepalives
// end a connection that hangs.
type forwarded struct {
	httpstream.Stream

	conn httpstream.Connection
}

func (f *forwarded) Close() error                   { return errors.Join(f.Reset(), f.conn.Close()) }
func (*forwarded) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*forwarded) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*forwarded) SetDeadline(time.Time) error      { return nil }
func (*forwarded) SetReadDeadline(time.Time) error  { return nil }
func (*forwarded) SetWriteDeadline(time.Time) error { return nil }
