package metal

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/client"
)

func TestOnlyLoopbackIsServedWithoutTLS(t *testing.T) {
	for name, tt := range map[string]struct {
		before string
		asked  serveOptions
		want   place
		fails  bool
	}{
		"a new home":                      {want: place{addr: "127.0.0.1:0"}},
		"the last address is kept":        {before: "http://127.0.0.1:8800", want: place{addr: "127.0.0.1:8800"}},
		"and so is TLS":                   {before: "https://192.0.2.1:8800", want: place{addr: "192.0.2.1:8800", tls: true}},
		"a damaged address is not":        {before: "://", want: place{addr: "127.0.0.1:0"}},
		"loopback by name":                {asked: serveOptions{addr: "localhost:1"}, want: place{addr: "localhost:1"}},
		"loopback of IPv6":                {asked: serveOptions{addr: "[::1]:1"}, want: place{addr: "[::1]:1"}},
		"loopback with TLS":               {asked: serveOptions{addr: "127.0.0.1:1", tls: true}, want: place{addr: "127.0.0.1:1", tls: true}},
		"another address":                 {asked: serveOptions{addr: "192.0.2.1:1"}, fails: true},
		"every address":                   {asked: serveOptions{addr: ":1"}, fails: true},
		"every address of IPv4":           {asked: serveOptions{addr: "0.0.0.0:1"}, fails: true},
		"a name":                          {asked: serveOptions{addr: "metal.example:1"}, fails: true},
		"another address with TLS":        {asked: serveOptions{addr: "0.0.0.0:1", tls: true}, want: place{addr: "0.0.0.0:1", tls: true}},
		"an old service on every address": {before: "http://[::]:8800", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := metal.Home{Dir: t.TempDir()}
			if err := h.WriteEndpoint(metal.Endpoint{URL: tt.before}); err != nil {
				t.Fatal(err)
			}
			got, err := tt.asked.place(h)
			if tt.fails {
				if err == nil || !strings.Contains(err.Error(), "add --tls") {
					t.Errorf("got error %v, want one that contains %q", err, "add --tls")
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("served at %+v, want %+v, error %v", got, tt.want, err)
			}
		})
	}
}

// sniffer records what a client sends over the network.
type sniffer struct {
	net.Conn

	mu   *sync.Mutex
	seen *bytes.Buffer
}

func (s sniffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.seen.Write(p)
	s.mu.Unlock()
	return s.Conn.Write(p)
}

// bridge serves as metal does on loopback and, for machines, on the bridge, for which 127.0.0.2
// stands.
func bridge(t *testing.T, h metal.Home) (metal.Endpoint, *int) {
	t.Helper()
	var e metal.Endpoint
	listeners, err := (&serveOptions{}).listen(t.Context(), h, netip.MustParseAddr("127.0.0.2"), &e)
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		io.WriteString(w, `{"id":"d"}`)
	})}
	for _, l := range listeners {
		go server.Serve(l)
	}
	t.Cleanup(func() { server.Close() })
	return e, &requests
}

func TestTokensNeverTravelInClearText(t *testing.T) {
	e, requests := bridge(t, metal.Home{Dir: t.TempDir()})
	ca, err := e.TrustedCA()
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pki.Pool(ca)
	if err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	var mu sync.Mutex
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return sniffer{conn, &mu, &seen}, err
		},
	}
	api, err := client.New(client.Options{URL: e.MachinesAPIURL(), Token: "secret-token", HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := api.Device(t.Context(), "d"); err != nil || d.ID != "d" {
		t.Fatalf("device %v, error %v", d, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(seen.String(), "secret-token") || seen.Len() == 0 {
		t.Errorf("on the wire: %q", seen.String())
	}
	// An old client that knows the address without TLS reaches nothing.
	*requests = 0
	if res, err := http.Get("http" + strings.TrimPrefix(e.Machines, "https")); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest || *requests > 0 {
			t.Errorf("without TLS machines get %d", res.StatusCode)
		}
	}
	if _, err := client.New(client.Options{URL: "http://198.18.0.1:8800/metal/v1", Token: "t"}); err == nil || !strings.Contains(err.Error(), "drover up") {
		t.Errorf("a client for an API without TLS: %v", err)
	}
	// Tools on this host need no certificate.
	if res, err := http.Get(e.URL); err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusOK {
		t.Errorf("on loopback: %v, %v", res, err)
	}
}

func TestClientsTrustOnlyTheCAOfTheHome(t *testing.T) {
	home := metal.Home{Dir: t.TempDir()}
	e, _ := bridge(t, home)
	ca, err := e.TrustedCA()
	if err != nil {
		t.Fatal(err)
	}
	strange, _ := bridge(t, metal.Home{Dir: t.TempDir()})
	for name, tt := range map[string]struct {
		url  string
		fine bool
	}{"its own": {e.Machines, true}, "one that took over the address": {strange.Machines, false}} {
		api, err := client.New(client.Options{URL: tt.url, Token: "t", CA: ca})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := api.Device(t.Context(), "d"); (err == nil) != tt.fine {
			t.Errorf("%s: got error %v, want success: %t", name, err, tt.fine)
		}
	}
	again, _ := bridge(t, home)
	if kept, err := again.TrustedCA(); err != nil || !bytes.Equal(kept, ca) {
		t.Errorf("a restart changed the CA (%v)", err)
	}
}
