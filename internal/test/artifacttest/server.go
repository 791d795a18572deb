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

// ServerOptions configure repositories and registries.
type ServerOptions struct {
	// TLS serves with a certificate that is signed by CA.
	TLS bool
	// Username and Password are required if they are set.
	Username, Password string
}

// server is an HTTP server that counts requests and fails on demand.
type server struct {
	// Host is host:port.
	Host string
	// CA is the PEM-encoded CA, if the server uses TLS.
	CA []byte

	options ServerOptions

	mu       sync.Mutex
	requests []string
	status   int
	hanging  chan struct{}
	// hangAt is a part of the paths that get no response.
	hangAt string
}

// serve starts the server, which stops with the test.
func (s *server) serve(t testing.TB, handler http.Handler) {
	t.Helper()
	web := httptest.NewUnstartedServer(s.counted(handler))
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // tests include clients that don't trust it
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
		status, hanging := s.recordRequest(r)
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

func (s *server) recordRequest(r *http.Request) (int, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if !strings.Contains(r.URL.Path, s.hangAt) {
		return s.status, nil
	}
	return s.status, s.hanging
}

// authorized reports whether a request has the required credentials.
func (s *server) authorized(r *http.Request) bool {
	if s.options.Username == "" {
		return true
	}
	username, password, _ := r.BasicAuth()
	return username == s.options.Username && password == s.options.Password
}

// Requests returns all requests so far, such as "GET /index.yaml".
func (s *server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Count returns the number of requests whose path contains part.
func (s *server) Count(part string) int {
	count := 0
	for _, request := range s.Requests() {
		if strings.Contains(request, part) {
			count++
		}
	}
	return count
}

// Fail responds to all requests with the status, until Resume.
func (s *server) Fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Hang accepts requests without responding, until Resume.
func (s *server) Hang() { s.HangAt("") }

// HangAt is Hang for requests whose path contains part.
func (s *server) HangAt(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangAt = part
	if s.hanging == nil {
		s.hanging = make(chan struct{})
	}
}

// Resume ends Fail and Hang. Pending requests get a response.
func (s *server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = 0
	if s.hanging != nil {
		close(s.hanging)
		s.hanging = nil
	}
}

// Access returns the credentials and CA of the server.
func (s *server) Access() artifact.Access {
	return artifact.Access{Username: s.options.Username, Password: s.options.Password, CA: s.CA}
}

// DockerConfig returns the same as a config.json.
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
