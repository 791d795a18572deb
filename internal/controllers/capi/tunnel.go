package capi

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/proxy"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// Upstream's control plane provider talks to etcd through a WebSocket to the API server. It ignores
// the transport and the dialer of a configuration, and reads whatever the server sends. It honors
// the proxy, so that tunnels gives it one with a scheme of its own, an extension that
// golang.org/x/net/proxy provides for:
//
//	upstream ──ws, plain──▶ tunnel ──limits, TLS, proxy of the cluster──▶ API server ──▶ etcd
//
// TLS begins and ends in the tunnel, so that it can also limit what the frames contain.
const tunnelScheme = "workload-tunnel"

// Limits of a connection to etcd. What upstream asks etcd for takes a few kilobytes.
const (
	maxTunnel      = 256 << 10
	tunnelTimeout  = 10 * time.Second
	tunnelLifetime = controlPlaneTimeout
)

// tunneled has the links whose clusters can be reached through tunnels, by their scheme.
var tunneled sync.Map

var registerTunnels = sync.OnceFunc(func() { proxy.RegisterDialerType(tunnelScheme, openTunnel) })

// tunnels is connections with configurations for etcd.
type tunnels struct{ connections }

// GetRESTConfig returns a configuration that works only for WebSockets.
func (t tunnels) GetRESTConfig(ctx context.Context, cluster client.ObjectKey) (*rest.Config, error) {
	config, err := t.connections.GetRESTConfig(ctx, cluster)
	if err != nil {
		return nil, err
	}
	return t.links.tunnel(cluster, config), nil
}

// tunnel makes a configuration lead through the tunnel to a cluster.
func (l *links) tunnel(cluster client.ObjectKey, config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = "http://" + strings.TrimPrefix(strings.TrimPrefix(config.Host, "https://"), "http://")
	config.TLSClientConfig, config.Dial = rest.TLSClientConfig{}, nil
	through := &url.URL{Scheme: tunnelScheme, Host: l.scheme, Path: "/" + cluster.String()}
	config.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.Method != http.MethodGet {
			return nil, errors.New("the API server doesn't open a WebSocket to the Pod, and SPDY is not used")
		}
		return through, nil
	}
	return config
}

// openTunnel returns the dialer for the address of a tunnel.
func openTunnel(through *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
	namespace, name, _ := strings.Cut(strings.TrimPrefix(through.Path, "/"), "/")
	if l, ok := tunneled.Load(through.Host); ok {
		if to := l.(*links).get(client.ObjectKey{Namespace: namespace, Name: name}); to != nil {
			return dialer(to.openTunnel), nil
		}
	}
	return nil, fmt.Errorf("no connection to cluster %q", namespace+"/"+name)
}

// dialer connects to an address.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Dial implements proxy.Dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// DialContext implements proxy.ContextDialer.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// openTunnel connects to the API server of the cluster, whatever the address.
func (k *link) openTunnel(ctx context.Context, _, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, tunnelTimeout)
	defer cancel()
	conn, err := k.dial(ctx, hostPort(k.base))
	if err != nil {
		return nil, err
	}
	if k.base.Scheme == "https" {
		trust, err := rest.TLSConfigFor(k.config)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		if conn, err = encrypt(ctx, conn, trust, k.base); err != nil {
			return nil, err
		}
	}
	return &framed{Conn: conn}, nil
}

// dial connects to an address within limits, through the proxy of the cluster if it has one.
func (k *link) dial(ctx context.Context, address string) (net.Conn, error) {
	connect := dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		dial := k.config.Dial
		if dial == nil {
			dial = (&net.Dialer{}).DialContext
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return bounded.Conn(conn, bounded.Limits{Peer: "workload cluster", Body: maxTunnel, Timeout: tunnelLifetime}), nil
	})
	find := k.config.Proxy
	if find == nil {
		find = http.ProxyFromEnvironment
	}
	through, err := find(&http.Request{URL: k.base})
	switch {
	case err != nil:
		return nil, err
	case through == nil:
		return connect(ctx, "tcp", address)
	case through.Scheme == "http" || through.Scheme == "https":
		return connectThrough(ctx, connect, through, address)
	}
	socks, err := proxy.FromURL(through, connect)
	if err != nil {
		return nil, err
	}
	return socks.(proxy.ContextDialer).DialContext(ctx, "tcp", address)
}

// connectThrough asks a proxy for a connection.
func connectThrough(ctx context.Context, connect dialer, through *url.URL, address string) (net.Conn, error) {
	conn, err := connect(ctx, "tcp", hostPort(through))
	if err != nil {
		return nil, err
	}
	if through.Scheme == "https" {
		if conn, err = encrypt(ctx, conn, nil, through); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := requestConnection(conn, through.User, address); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting through proxy %q: %w", through.Host, err), conn.Close())
	}
	return conn, nil
}

func requestConnection(conn net.Conn, user *url.Userinfo, address string) error {
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if user != nil {
		password, _ := user.Password()
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := r.Write(conn); err != nil {
		return err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), r) // The API server sends nothing before the client.
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy responded %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	return nil
}

// encrypt begins TLS with a server.
func encrypt(ctx context.Context, conn net.Conn, trust *tls.Config, to *url.URL) (net.Conn, error) {
	if trust == nil {
		trust = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	trust = trust.Clone()
	trust.ServerName = cmp.Or(trust.ServerName, to.Hostname())
	encrypted := tls.Client(conn, trust)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return encrypted, nil
}

// hostPort returns the address of a URL.
func hostPort(u *url.URL) string {
	port := "443"
	if u.Scheme == "http" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}
