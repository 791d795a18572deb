package artifacttest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
)

// ServerOptions are what repositories and registries have in common.
type ServerOptions struct {
	// TLS makes the server speak it, with a certificate that only CA vouches for.
	TLS bool
	// Username and Password are asked for if they are set.
	Username, Password string
}

// server is an HTTP server that counts, and fails on command.
type server struct {
	// Host is host:port.
	Host string
	// CA is in PEM, if the server speaks TLS.
	CA []byte

	options ServerOptions

	mu       sync.Mutex
	requests []string
	status   int
	hanging  chan struct{}
	// hangAt is the part of a path that is not answered.
	hangAt string
}

// serve starts the server. It ends with the test.
func (s *server) serve(t testing.TB, handler http.Handler) {
	t.Helper()
	web := httptest.NewUnstartedServer(s.counted(handler))
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // Clients that don't trust it are part of tests.
	if s.options.TLS {
		web.StartTLS()
		s.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	} else {
		web.Start()
	}
	s.Host = web.Listener.Addr().String()
	t.Cleanup(func() {
		s.Resume()
		web.Close()
	})
}

func (s *server) scheme() string {
	if s.options.TLS {
		return "https"
	}
	return "http"
}

func (s *server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, hanging := s.arrived(r)
		if hanging != nil {
			select {
			case <-hanging:
			case <-r.Context().Done():
				return
			}
		}
		if status != 0 {
			http.Error(w, "out of order", status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) arrived(r *http.Request) (int, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if !strings.Contains(r.URL.Path, s.hangAt) {
		return s.status, nil
	}
	return s.status, s.hanging
}

// authorized tells whether a request has the credentials that are asked for.
func (s *server) authorized(r *http.Request) bool {
	if s.options.Username == "" {
		return true
	}
	username, password, _ := r.BasicAuth()
	return username == s.options.Username && password == s.options.Password
}

// Requests are those that came until now, like "GET /index.yaml".
func (s *server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Count says how many requests came whose path has the part.
func (s *server) Count(part string) int {
	count := 0
	for _, request := range s.Requests() {
		if strings.Contains(request, part) {
			count++
		}
	}
	return count
}

// Fail makes the server answer everything with the status, until Resume.
func (s *server) Fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Hang makes the server take requests and not answer them, until Resume.
func (s *server) Hang() { s.HangAt("") }

// HangAt does so for requests whose path has the part only.
func (s *server) HangAt(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangAt = part
	if s.hanging == nil {
		s.hanging = make(chan struct{})
	}
}

// Resume makes the server work again. Requests that hang are answered.
func (s *server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = 0
	if s.hanging != nil {
		close(s.hanging)
		s.hanging = nil
	}
}

// Access opens the server.
func (s *server) Access() artifact.Access {
	return artifact.Access{Username: s.options.Username, Password: s.options.Password, CA: s.CA}
}

// DockerConfig opens the server as well, with a config.json.
func (s *server) DockerConfig(t testing.TB) []byte {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(s.options.Username + ":" + s.options.Password))
	config, err := json.Marshal(map[string]any{"auths": map[string]any{s.Host: map[string]string{"auth": auth}}})
	must(t, err)
	return config
}

func trusting(t testing.TB, ca []byte) http.RoundTripper {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if ca != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			t.Fatal("the server's certificate can't be read")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}
