package capi

import (
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/httpstream"      //nolint:staticcheck // The types of Cluster API.
	"k8s.io/apimachinery/pkg/util/httpstream/spdy" //nolint:staticcheck // The types of Cluster API.
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/proxy"

	"github.com/drover-dev/drover/internal/base/bounded"
)

var tunneledCluster = client.ObjectKey{Namespace: "team-a", Name: "one"}

// apiServer runs a server with TLS and returns the configuration for it.
func apiServer(t *testing.T, handle http.Handler) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(handle)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

// dialEtcd connects to etcd as upstream does.
func dialEtcd(t *testing.T, config *rest.Config) (net.Conn, error) {
	t.Helper()
	l := newLinks()
	_, err := l.connect(t.Context(), tunneledCluster, config)
	must(t, err)
	d, err := proxy.NewDialer(proxy.Proxy{
		Kind: "pods", Namespace: "kube-system", Port: 2379, KubeConfig: l.tunnel(tunneledCluster, l.get(tunneledCluster).config),
	})
	must(t, err)
	conn, err := d.DialContextWithAddr(t.Context(), "etcd-one")
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// etcd is an API server that forwards what it receives to serve.
func etcd(serve func(*websocket.Conn)) http.Handler {
	return websocket.Server{
		Handshake: func(c *websocket.Config, r *http.Request) error {
			if r.Header.Get("Authorization") != "Bearer t" || r.URL.Path != "/api/v1/namespaces/kube-system/pods/etcd-one/portforward" {
				return errors.New("not authorized")
			}
			c.Protocol = c.Protocol[:1]
			return nil
		},
		Handler: func(c *websocket.Conn) {
			c.PayloadType = websocket.BinaryFrame
			serve(c)
		},
	}
}

// echo returns what it receives on the stream for data.
func echo(c *websocket.Conn) {
	conn, err := spdy.NewServerConnection(c, func(s httpstream.Stream, replied <-chan struct{}) error {
		go func() {
			<-replied
			_, _ = io.Copy(s, s)
		}()
		return nil
	})
	if err == nil {
		<-conn.CloseChan()
	}
}

func checkEcho(t *testing.T, conn net.Conn) {
	t.Helper()
	want := strings.Repeat("etcd ", 1<<10)
	go func() { _, _ = io.WriteString(conn, want) }()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("received %d bytes, error %v", len(got), err)
	}
}

func TestEtcdIsReachedThroughATunnel(t *testing.T) {
	conn, err := dialEtcd(t, apiServer(t, etcd(echo)))
	must(t, err)
	checkEcho(t, conn)
}

func TestEtcdIsReachedThroughTheProxyOfTheCluster(t *testing.T) {
	var asked atomic.Value
	through := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Host + " " + r.Header.Get("Proxy-Authorization"))
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(through.Close)
	config := apiServer(t, etcd(echo))
	address, err := url.Parse(strings.Replace(through.URL, "http://", "http://user:password@", 1))
	must(t, err)
	config.Proxy = http.ProxyURL(address)
	conn, err := dialEtcd(t, config)
	must(t, err)
	checkEcho(t, conn)
	if want := strings.TrimPrefix(config.Host, "https://") + " Basic dXNlcjpwYXNzd29yZA=="; asked.Load() != want {
		t.Errorf("got a request to the proxy for %q, want %q", asked.Load(), want)
	}
}

// TestEtcdIsNotDialedOnThisHost names a proxy that resolves to this host.
func TestEtcdIsNotDialedOnThisHost(t *testing.T) {
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(inside.Close)
	address, err := url.Parse(inside.URL)
	must(t, err)
	conn, err := dialEtcd(t, &rest.Config{Host: "https://192.0.2.1:6443", Proxy: http.ProxyURL(address), Dial: bounded.DialAwayFromHost})
	if err == nil || reached.Load() != 0 {
		t.Errorf("dialed %v, requests to this host: %d", conn, reached.Load())
	}
}

// endless writes a block until nobody reads, but at most 64 MiB, and returns how much that was.
func endless(to io.Writer, block string) int64 {
	sent := 0
	for sent < 64<<20 {
		n, err := io.WriteString(to, block)
		if sent += n; err != nil {
			break
		}
	}
	return int64(sent)
}

// TestEtcdConnectionsAreBounded answers upstream's request for etcd without an end.
func TestEtcdConnectionsAreBounded(t *testing.T) {
	hijacked := func(start, block string, sent chan int64) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, start)
			sent <- endless(conn, block)
		})
	}
	block := strings.Repeat("x", 1<<12)
	for name, answer := range map[string]func(chan int64) http.Handler{
		"headers": func(sent chan int64) http.Handler { return hijacked("HTTP/1.1 101 x\r\n", "a: "+block+"\r\n", sent) },
		"errors":  func(sent chan int64) http.Handler { return hijacked("HTTP/1.1 500 x\r\n\r\n", block, sent) },
		"frames": func(sent chan int64) http.Handler {
			return etcd(func(c *websocket.Conn) { sent <- endless(c, "\x00\x00\x00\x09\x00\x00\x10\x00"+block) })
		},
	} {
		sent := make(chan int64, 10)
		if conn, err := dialEtcd(t, apiServer(t, answer(sent))); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
		// Buffers of both hosts hold more than the limit.
		if got := <-sent; got >= 64<<20 {
			t.Errorf("%s: read %d MiB", name, got>>20)
		}
	}
}

func TestFramesOfATunnel(t *testing.T) {
	const opened = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
	frame := func(first byte, content string) string {
		return string(binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(len(content)))) + content
	}
	control := func(size uint32, content string) string {
		return string(binary.BigEndian.AppendUint32([]byte{0x80, 3, 0, 2}, size)) + content
	}
	data := "\x00\x00\x00\x01\x00\x00\x20\x00" + strings.Repeat("\xff", 0x2000)
	for name, tt := range map[string]struct {
		text  string
		valid bool
	}{
		"an error":                       {"HTTP/1.1 404 Not Found\r\n\r\n\xff\xff\xff\xff", true},
		"a small control frame":          {opened + frame(0x82, control(4, "abcd")+data+control(4, "abcd")), true},
		"a control frame in two":         {opened + frame(0x02, control(4, "ab")) + frame(0x80, "cd"+control(0, "")), true},
		"a ping between":                 {opened + frame(0x82, "\x80\x03") + frame(0x89, "\xff\xff") + frame(0x82, "\x00\x02\x00\x00\x00\x00"), true},
		"a large control frame":          {opened + frame(0x82, control(maxControl+1, "")), false},
		"a large control frame in two":   {opened + frame(0x82, data+"\x80\x03\x00\x02\x00\x0f") + frame(0x80, "\xff\xff"), false},
		"a large control frame at last":  {opened + "\x82\x7f\x00\x00\x00\x00\x00\x00\x00\x08" + control(1<<23, ""), false},
		"a compressed frame":             {opened + frame(0xc2, data), false},
		"a masked frame":                 {opened + "\x82\x84abcdabcd", false},
		"a head without an end":          {strings.Repeat("a", maxHead+1), false},
		"a head that is larger than all": {opened[:40] + strings.Repeat("a", maxHead) + opened[40:], false},
	} {
		for _, step := range []int{1, 7, 1 << 20} {
			f, err := &framed{}, error(nil)
			for left := []byte(tt.text); len(left) > 0 && err == nil; {
				n := min(step, len(left))
				err, left = f.add(left[:n]), left[n:]
			}
			if tt.valid != (err == nil) {
				t.Errorf("%s, %d bytes at a time: error %v", name, step, err)
			}
		}
	}
}

func TestConnectionsToEtcdEnd(t *testing.T) {
	here, there := net.Pipe()
	t.Cleanup(func() { _ = there.Close() })
	conn := bounded.Conn(here, bounded.Limits{Body: 100, Timeout: time.Millisecond})
	_ = conn.SetDeadline(time.Time{}) // as libraries do after a handshake
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes", n)
	}
}

func TestTunnelOfAnUnknownClusterFails(t *testing.T) {
	for _, address := range []string{"workload-tunnel://workload/team-x/none", "workload-tunnel://other/a/b"} {
		u, err := url.Parse(address)
		must(t, err)
		if d, err := openTunnel(u, nil); err == nil {
			t.Errorf("%s: opened %v", address, d)
		}
	}
}
