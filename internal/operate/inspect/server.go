package inspect

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Limits of responses of an API server.
const (
	serverTimeout = 10 * time.Second
	maxMetrics    = 32 << 20
	maxChecks     = 256 << 10
)

// Server is what the API server of a management plane tells the caller about itself. What the
// caller may not know is missing, with a line in Unknown.
type Server struct {
	// Version is that of Kubernetes.
	Version string  `json:"version,omitempty"`
	Checks  []Check `json:"checks,omitempty"`
	// Certificate and ClientCertificate are when those of the server and of the caller expire.
	Certificate       metav1.Time `json:"certificate,omitzero"`
	ClientCertificate metav1.Time `json:"clientCertificate,omitzero"`
	// Memory is what the process of the server has, in bytes, and Started when it was started.
	Memory  int64       `json:"memory,omitempty"`
	Started metav1.Time `json:"started,omitzero"`
	Unknown []string    `json:"unknown,omitempty"`
}

// Check is a part of the API server that must work for it to be ready.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
}

// errNoServer means that the plane was not connected to by Connect.
var errNoServer = errors.New("the address of the API server is not known")

// Server asks the API server about itself, with the privileges of the caller.
func (p *Plane) Server(ctx context.Context) (*Server, error) {
	if p.config == nil {
		return nil, errNoServer
	}
	base, _, err := rest.DefaultServerUrlFor(p.config)
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	client, err := rest.HTTPClientFor(p.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", p.Host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	q := &question{client: client, base: strings.TrimSuffix(base.String(), "/"), answer: &Server{}}
	if err := q.get(ctx, "/version", q.version); err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", p.Host, err)
	}
	q.try(ctx, "the state of its parts", "/readyz?verbose", q.checks)
	q.try(ctx, "its memory", "/metrics", q.process)
	q.answer.ClientCertificate = clientExpiry(p.config)
	return q.answer, nil
}

// question collects the answers of an API server.
type question struct {
	client *http.Client
	base   string
	answer *Server
}

// try notes what the caller can't read.
func (q *question) try(ctx context.Context, what, path string, read func(*http.Response) error) {
	if err := q.get(ctx, path, read); err != nil {
		q.answer.Unknown = append(q.answer.Unknown, fmt.Sprintf("%s: %v", what, err))
	}
}

func (q *question) get(ctx context.Context, path string, read func(*http.Response) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, q.base+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := q.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		return fmt.Errorf("you may not read %s", strings.TrimSuffix(path, "?verbose"))
	case http.StatusOK, http.StatusInternalServerError: // a server that isn't ready says why
		return read(response)
	}
	return fmt.Errorf("the server answers %s", response.Status)
}

func (q *question) version(response *http.Response) error {
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		q.answer.Certificate = metav1.NewTime(response.TLS.PeerCertificates[0].NotAfter)
	}
	var body struct {
		GitVersion string `json:"gitVersion"`
	}
	err := json.NewDecoder(io.LimitReader(response.Body, maxChecks)).Decode(&body)
	q.answer.Version = body.GitVersion
	return err
}

// checks reads lines such as "[+]etcd ok" and "[-]etcd failed: reason withheld".
func (q *question) checks(response *http.Response) error {
	lines := bufio.NewScanner(io.LimitReader(response.Body, maxChecks))
	for lines.Scan() {
		good, passed := strings.CutPrefix(lines.Text(), "[+]")
		bad, failed := strings.CutPrefix(lines.Text(), "[-]")
		if name, _, _ := strings.Cut(good, " "); passed {
			q.answer.Checks = append(q.answer.Checks, Check{Name: name, OK: true})
		}
		if name, _, _ := strings.Cut(bad, " "); failed {
			q.answer.Checks = append(q.answer.Checks, Check{Name: name})
		}
	}
	return lines.Err()
}

// process reads what the metrics say about the process.
func (q *question) process(response *http.Response) error {
	lines := bufio.NewScanner(io.LimitReader(response.Body, maxMetrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case name == "process_resident_memory_bytes":
			q.answer.Memory = int64(value)
		case name == "process_start_time_seconds":
			q.answer.Started = metav1.NewTime(time.Unix(int64(value), 0))
		}
	}
	return lines.Err()
}

// clientExpiry returns when the client certificate of a configuration expires, or zero if it has
// none.
func clientExpiry(config *rest.Config) metav1.Time {
	data := config.CertData
	if len(data) == 0 && config.CertFile != "" {
		data, _ = os.ReadFile(config.CertFile) // it is not known then
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return metav1.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return metav1.Time{}
	}
	return metav1.NewTime(certificate.NotAfter)
}
