package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/base/process"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/api"
)

// open returns a client for a server that is recorded in a home, as the metal service does it.
func open(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return recorded(t, metal.Endpoint{URL: server.URL, Process: process.Identify(os.Getpid())})
}

// recorded returns a client for an endpoint in a home.
func recorded(t *testing.T, e metal.Endpoint) *Client {
	t.Helper()
	h := metal.Home{Dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(h.AdminTokenFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.AdminTokenFile(), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.WriteEndpoint(e); err != nil {
		t.Fatal(err)
	}
	c, err := Open(h)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOtherProcessesGetNoToken: any user of the host may listen at the port of a service that has
// stopped.
func TestOtherProcessesGetNoToken(t *testing.T) {
	var tokens []string
	thief := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { tokens = append(tokens, r.Header.Get("X-Auth-Token")) })
	plain, secure := httptest.NewServer(thief), httptest.NewTLSServer(thief)
	defer plain.Close()
	defer secure.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	authority, err := pki.NewAuthority("metal", time.Now(), time.Hour)
	if err == nil {
		err = os.WriteFile(ca, authority.PEM(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	running := process.Identify(os.Getpid())
	for name, e := range map[string]metal.Endpoint{
		"the service has stopped":            {URL: plain.URL},
		"its process was replaced":           {URL: plain.URL, Process: process.Process{PID: running.PID, Start: "another"}},
		"it has TLS, and another took over":  {URL: plain.URL, Machines: secure.URL, CA: ca, Process: running},
		"it has TLS, and its port is stolen": {URL: secure.URL, CA: ca, Process: running},
	} {
		if err := recorded(t, e).Do(t.Context(), http.MethodGet, "/projects", nil, nil); err == nil {
			t.Errorf("%s: the request succeeded", name)
		}
	}
	if len(tokens) > 0 {
		t.Errorf("another process received %q", tokens)
	}
}

func respond(t *testing.T, w http.ResponseWriter, v any) {
	t.Helper()
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Error(err)
	}
}

func TestOpenWithoutAService(t *testing.T) {
	_, err := Open(metal.Home{Dir: t.TempDir()})
	if !errors.Is(err, metal.ErrNoMetal) || !strings.Contains(err.Error(), "drover up") {
		t.Errorf("got error %v, want one that contains %q", err, "drover up")
	}
}

func TestDoSendsTheTokenAndTheBody(t *testing.T) {
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]string
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body["name"] != "team" {
			t.Errorf("body %v: %v", body, err)
		}
		if got := r.Header.Get("X-Auth-Token"); got != "secret" || r.Method != http.MethodPost || r.URL.Path != "/projects" {
			t.Errorf("%s %s with token %q", r.Method, r.URL.Path, got)
		}
		respond(t, w, api.Project{ID: "p"})
	})
	var p api.Project
	if err := c.Do(t.Context(), http.MethodPost, "/projects", map[string]string{"name": "team"}, &p); err != nil || p.ID != "p" {
		t.Errorf("project %+v: %v", p, err)
	}
}

func TestServiceErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		status   int
		body     string
		want     string
		notFound bool
	}{
		"not found":     {404, `{"errors":["Not found"]}`, "the metal service responded with 404: Not found", true},
		"several":       {422, `{"errors":["A","B"]}`, "the metal service responded with 422: A; B", false},
		"not JSON":      {502, "bad gateway\n", "the metal service responded with 502: bad gateway", false},
		"empty message": {500, `{"errors":[]}`, `the metal service responded with 500: {"errors":[]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			err := c.Do(t.Context(), http.MethodGet, "/devices/d", nil, nil)
			if err == nil || err.Error() != tt.want || IsNotFound(err) != tt.notFound {
				t.Errorf("error %v, not found %t", err, IsNotFound(err))
			}
		})
	}
}

func TestStoppedServiceIsReported(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c := &Client{URL: server.URL, http: http.DefaultClient, alive: func() bool { return true }}
	err := c.Do(t.Context(), http.MethodGet, "/projects", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no metal service at "+server.URL+": start it with `drover up`") {
		t.Errorf("got error %v, want one that contains %q", err, "no metal service at "+server.URL+": start it with `drover up`")
	}
}

func TestInvalidJSONResponse(t *testing.T) {
	c := open(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") })
	var out api.Project
	if err := c.Do(t.Context(), http.MethodGet, "/projects/p", nil, &out); err == nil || !strings.Contains(err.Error(), "reading the response to GET /projects/p") {
		t.Errorf("got error %v, want one that contains %q", err, "reading the response to GET /projects/p")
	}
}

func TestStream(t *testing.T) {
	c := open(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "booting\n") })
	var out bytes.Buffer
	if err := c.Stream(t.Context(), "/console", &out); err != nil || out.String() != "booting\n" {
		t.Errorf("%q: %v", out.String(), err)
	}
}

// pages serves names as devices or projects, two per page.
func pages(t *testing.T, names ...string) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		page, err := strconv.Atoi(r.URL.Query().Get("page"))
		if err != nil {
			t.Errorf("page %q", r.URL.Query().Get("page"))
		}
		first, last := min((page-1)*2, len(names)), min(page*2, len(names))
		meta := api.Meta{}
		if last < len(names) {
			meta.Next = &api.Href{Href: "next"}
		}
		devices, projects := api.Devices{Meta: meta}, api.Projects{Meta: meta}
		for _, name := range names[first:last] {
			devices.Devices = append(devices.Devices, api.Device{ID: "id-" + name, Hostname: name})
			projects.Projects = append(projects.Projects, api.Project{Name: name})
		}
		if r.URL.Path == "/projects" {
			respond(t, w, projects)
			return
		}
		respond(t, w, devices)
	}
}

func TestListsReadAllPages(t *testing.T) {
	c := open(t, pages(t, "a", "b", "c", "d", "e"))
	devices, err := c.Devices(t.Context(), nil)
	if err != nil || len(devices) != 5 || devices[4].Hostname != "e" {
		t.Errorf("%d devices: %v", len(devices), err)
	}
	projects, err := c.Projects(t.Context())
	if err != nil || len(projects) != 5 || projects[4].Name != "e" {
		t.Errorf("%d projects: %v", len(projects), err)
	}
}

func TestFindDevice(t *testing.T) {
	c := open(t, pages(t, "web-1", "web-2", "db", "DB"))
	for name, tt := range map[string]struct{ want, problem string }{
		"web-1":    {want: "web-1"},
		"WEB-1":    {want: "web-1"},
		"id-web-2": {want: "web-2"},
		"web":      {problem: `machine "web" not found`},
		"id-web":   {problem: `2 machines are named "id-web"`},
		"db":       {problem: `2 machines are named "db"`},
	} {
		d, err := c.FindDevice(t.Context(), name)
		if tt.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s: error %v, want %q", name, err, tt.problem)
			}
			continue
		}
		if err != nil || d.Hostname != tt.want {
			t.Errorf("%s: found %q: %v", name, d.Hostname, err)
		}
	}
}

func TestExecSendsAStreamAndReturnsTheResult(t *testing.T) {
	c := open(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/drover/v1/devices/d/exec" || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		argv := r.URL.Query()["argv"]
		result := metal.Execution{Output: fmt.Sprintf("%v %s\n", argv, body)}
		if argv[0] == "false" {
			result.Error = "exit status 1"
		}
		respond(t, w, result)
	})
	if out, err := c.Exec(t.Context(), "d", strings.NewReader("in"), "cat", "-n"); err != nil || out != "[cat -n] in\n" {
		t.Errorf("%q, %v", out, err)
	}
	var failed *ExecError
	if _, err := c.Exec(t.Context(), "d", nil, "false"); !errors.As(err, &failed) || err.Error() != "exit status 1: [false]" {
		t.Errorf("got %v, want the result of the program", err)
	}
}
