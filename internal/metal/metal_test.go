package metal

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/memory"
)

// fast makes simulated machines ready in milliseconds.
const fast = 10000

// world is a running server with its default project.
type world struct {
	t       testing.TB
	s       *Server
	http    *httptest.Server
	home    Home
	project string
	token   string
	admin   string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return openWorld(t, Options{Home: Home{Dir: t.TempDir()}, Speed: fast})
}

func openWorld(t testing.TB, o Options) *world {
	t.Helper()
	if o.Driver == nil {
		o.Driver, o.DriverName = memory.New, "memory"
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, s: s, home: o.Home, http: httptest.NewServer(s.Handler())}
	t.Cleanup(w.close)
	p, err := s.ensureProject(DefaultProject)
	if err != nil {
		t.Fatal(err)
	}
	w.project = p.ID
	if w.token, err = o.Home.Token(p.ID); err != nil {
		t.Fatal(err)
	}
	if w.admin, err = o.Home.AdminToken(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) close() {
	if w.s == nil {
		return
	}
	w.s.stop()
	w.http.Close()
	if err := w.s.Close(); err != nil {
		w.t.Error(err)
	}
	w.s = nil
}

// call sends a request and decodes the response into out, if any.
func (w *world) call(token, method, path string, body, out any) int {
	w.t.Helper()
	var payload io.Reader
	if text, isText := body.(string); isText {
		payload = bytes.NewReader([]byte(text))
	} else if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, payload)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			w.t.Fatalf("%s %s answered %d %q: %v", method, path, resp.StatusCode, data, err)
		}
	}
	return resp.StatusCode
}

// must is call with the project's token and an expected status.
func (w *world) must(status int, method, path string, body, out any) {
	w.t.Helper()
	var raw json.RawMessage
	if out == nil {
		out = &raw
	}
	if status == http.StatusNoContent {
		out = nil
	}
	if got := w.call(w.token, method, path, body, out); got != status {
		w.t.Fatalf("%s %s answered %d %s, want %d", method, path, got, raw, status)
	}
}

// refused sends a request that must fail, and returns the first message.
func (w *world) refused(status int, method, path string, body any) string {
	w.t.Helper()
	var e api.Error
	if got := w.call(w.token, method, path, body, &e); got != status || len(e.Errors) == 0 {
		w.t.Fatalf("%s %s answered %d %v, want %d with a message", method, path, got, e.Errors, status)
	}
	return e.Errors[0]
}

// order returns a valid device order.
func order(hostname string, tags ...string) map[string]any {
	return map[string]any{"hostname": hostname, "plan": "c3.small.x86", "metro": "da", "operating_system": "ubuntu_22_04", "tags": tags}
}

func (w *world) create(body any) api.Device {
	w.t.Helper()
	var d api.Device
	w.must(http.StatusCreated, "POST", "/projects/"+w.project+"/devices", body, &d)
	return d
}

func (w *world) device(id string) api.Device {
	w.t.Helper()
	var d api.Device
	w.must(http.StatusOK, "GET", "/devices/"+id, nil, &d)
	return d
}

// awaitState waits until a device is in a state.
func (w *world) awaitState(id, state string) api.Device {
	w.t.Helper()
	var d api.Device
	w.eventually("device "+id+" is "+state, func() bool {
		d = w.device(id)
		return d.State == state
	})
	return d
}

func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not true after 10s: %s", what)
		}
	}
}

// awaitDeleted waits until a device is deleted.
func (w *world) awaitDeleted(id string) {
	w.t.Helper()
	w.eventually("device "+id+" is gone", func() bool {
		return w.call(w.token, "GET", "/devices/"+id, nil, nil) == http.StatusNotFound
	})
}

// quiet is a driver that does nothing, for tests that do not need machines.
func quiet() driver.New { return newFake().new }
