package gittest

import (
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
)

// The credentials of HTTPS servers.
const (
	Username = "drover"
	Password = "a-secret-token-of-tests"
)

// HTTPS is git http-backend behind TLS and basic authentication.
type HTTPS struct {
	// CA is the certificate that signed the server's own.
	CA []byte

	t       testing.TB
	root    string
	server  *httptest.Server
	backend http.Handler
	fault   atomic.Pointer[Fault]
}

// Fault handles a request in place of the server, which it may call.
type Fault func(w http.ResponseWriter, r *http.Request, server http.Handler)

// loopback is the address of servers that only this host needs to reach.
const loopback = "127.0.0.1"

// NewHTTPS starts a server that ends with the test.
func NewHTTPS(t testing.TB) *HTTPS {
	t.Helper()
	return NewHTTPSAt(t, loopback)
}

// NewHTTPSAt starts a server at an address of this host, for clients in other network namespaces.
func NewHTTPSAt(t testing.TB, address string) *HTTPS {
	t.Helper()
	s := &HTTPS{t: t, root: t.TempDir()}
	s.backend = &cgi.Handler{
		Path: filepath.Join(Run(t, s.root, "--exec-path"), "git-http-backend"),
		Root: "/",
		// What servers log is not of interest: tests see it as clients do.
		Logger: log.New(io.Discard, "", 0), Stderr: io.Discard,
		Env: append(environment(s.root), "GIT_PROJECT_ROOT="+s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+Username),
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}}
	s.server.TLS = &tls.Config{Certificates: []tls.Certificate{s.certificate(address)}, MinVersion: tls.VersionTLS12}
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	t.Cleanup(func() { s.server.CloseClientConnections(); s.server.Close() })
	return s
}

func (s *HTTPS) certificate(address string) tls.Certificate {
	now := time.Now()
	authority, err := pki.NewAuthority("gittest", now, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	template := pki.Template(pkix.Name{CommonName: "gittest"}, []string{address}, now, time.Hour)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	cert, key, err := authority.Issue(template)
	if err != nil {
		s.t.Fatal(err)
	}
	s.CA = authority.PEM()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return pair
}

// Create returns a new, empty repository.
func (s *HTTPS) Create(name string) *Repository { return newRepository(s.t, s.root, name) }

// URL returns the URL of a repository.
func (s *HTTPS) URL(name string) string { return s.server.URL + "/" + name }

// Stop ends the server before the test does.
func (s *HTTPS) Stop() { s.server.CloseClientConnections(); s.server.Close() }

// Inject replaces the current fault; nil removes it.
func (s *HTTPS) Inject(f Fault) {
	if f == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&f)
}

func (s *HTTPS) serve(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user != Username || subtle.ConstantTimeCompare([]byte(password), []byte(Password)) != 1 {
		w.Header().Set("WWW-Authenticate", `Basic realm="gittest"`)
		http.Error(w, "no access for "+user+" with "+password, http.StatusUnauthorized)
		return
	}
	w = flushing{w}
	if fault := s.fault.Load(); fault != nil {
		(*fault)(w, r, s.backend)
		return
	}
	s.backend.ServeHTTP(w, r)
}

// flushing sends everything at once, as servers without buffers do: a client sees the report of a
// push while hooks still run.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

// IsPush reports whether a request changes a reference.
func IsPush(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
}

// LosePush returns a fault that lets the server process pushes and cuts the connection instead of
// answering. It calls lost after each of them.
func LosePush(lost func()) Fault {
	return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if !IsPush(r) {
			server.ServeHTTP(w, r)
			return
		}
		server.ServeHTTP(httptest.NewRecorder(), r)
		lost()
		panic(http.ErrAbortHandler)
	}
}
