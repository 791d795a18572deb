// Package packettest is a small in-memory Packet API for tests of its clients, as unreliable as a
// test requires.
//
// It implements the behavior that clients depend on: pages of ten by default, short references,
// error bodies. Devices change their state only when a test requests it. Faults are injected before
// a request is executed, or after, when only the response is lost. Start with New and API.Fail.
package packettest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Token is the accepted token.
const Token = "packettest-token"

// API is a running server.
type API struct {
	*httptest.Server

	mu        sync.Mutex
	devices   []*Device
	addresses []*Address
	keys      []Key
	plans     []json.RawMessage
	bgp       map[string]bool
	faults    []*Fault
	requests  []string
	orders    []map[string]any
	serial    int
}

// Device is the stored state of a device.
type Device struct {
	ID, Project, Hostname, State, Metro, Facility, Plan string
	Tags                                                []string
	Sessions                                            int
	Hidden                                              bool // responds with 403, and is not listed
	Events                                              []Event
	created                                             time.Time
	private                                             string
}

// Event is an event of a device.
type Event struct {
	Type string `json:"type"`
	Body string `json:"body"`
}

// Address is an elastic address.
type Address struct {
	ID, Project, Address, Metro string
	Tags                        []string
	Assignment, Device          string
	created                     time.Time
}

// Key is a project's SSH key.
type Key struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Key   string `json:"key"`
}

// Fault is a failure of requests.
type Fault struct {
	// Method and Path select requests, the path by its suffix; empty selects all.
	Method, Path string
	// Times is the number of failures; 0 means until the test ends.
	Times int
	// Status and Body are the response. Status 0 closes the connection.
	Status int
	Body   string
	Header map[string]string
	// After executes the request first.
	After bool
	// Truncate sends half of the real response; it implies After.
	Truncate bool
	// Do is called at each failure.
	Do func()

	used int
}

// New starts a server that stops with the test.
func New(t testing.TB) *API {
	t.Helper()
	a := &API{bgp: map[string]bool{}}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

// Fail adds a fault. Earlier faults that still apply take precedence.
func (a *API) Fail(f Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = append(a.faults, &f)
}

// Heal removes all faults.
func (a *API) Heal() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = nil
}

func (a *API) fault(r *http.Request) *Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r.Method+" "+r.URL.Path)
	for _, f := range a.faults {
		if (f.Method == "" || f.Method == r.Method) && strings.HasSuffix(r.URL.Path, f.Path) && (f.Times == 0 || f.used < f.Times) {
			f.used++
			return f
		}
	}
	return nil
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	f := a.fault(r)
	if f == nil {
		a.handle(w, r)
		return
	}
	if f.Do != nil {
		f.Do()
	}
	if f.After || f.Truncate {
		answer := httptest.NewRecorder()
		a.handle(answer, r)
		if f.Truncate {
			w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			panic(http.ErrAbortHandler)
		}
	}
	if f.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	for key, value := range f.Header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body))
}

func (a *API) handle(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Header.Get("X-Auth-Token") != Token {
		refuse(w, http.StatusUnauthorized, "Invalid authentication token")
		return
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	route := r.Method + " " + parts[0]
	if len(parts) > 2 {
		route += " " + strings.Join(parts[2:], "/")
	}
	id := ""
	if len(parts) > 1 {
		id = parts[1]
	}
	switch route {
	case "GET projects devices":
		a.listDevices(w, r, id)
	case "POST projects devices":
		a.createDevice(w, r, id)
	case "GET devices":
		a.getDevice(w, id)
	case "DELETE devices":
		a.deleteDevice(w, id)
	case "GET devices events":
		a.listEvents(w, r, id)
	case "POST devices ips":
		a.assign(w, r, id)
	case "POST devices bgp/sessions":
		a.startSession(w, id)
	case "GET projects ips":
		a.listAddresses(w, r, id)
	case "POST projects ips":
		a.reserve(w, r, id)
	case "GET ips":
		a.getAddress(w, id)
	case "DELETE ips":
		a.deleteAddress(w, id)
	case "GET projects ssh-keys":
		write(w, http.StatusOK, map[string]any{"ssh_keys": a.keys})
	case "GET projects bgp-config":
		a.bgpConfig(w, id)
	case "POST projects bgp-configs":
		a.bgp[id] = true
		w.WriteHeader(http.StatusNoContent)
	case "GET projects plans":
		write(w, http.StatusOK, map[string]any{"plans": a.plans})
	default:
		refuse(w, http.StatusNotFound, "Not found")
	}
}

// now returns a different time for each object, which shows the order of creation.
func (a *API) now() time.Time {
	a.serial++
	return time.Date(2026, 1, 1, 0, 0, a.serial, 0, time.UTC)
}

func page[T any](w http.ResponseWriter, r *http.Request, key string, items []T, size int) {
	number, _ := strconv.Atoi(r.URL.Query().Get("page"))
	if per, err := strconv.Atoi(r.URL.Query().Get("per_page")); err == nil {
		size = min(per, 1000)
	}
	number = max(number, 1)
	last := max(1, (len(items)+size-1)/size)
	from, to := min((number-1)*size, len(items)), min(number*size, len(items))
	write(w, http.StatusOK, map[string]any{
		key:    items[from:to],
		"meta": map[string]any{"total": len(items), "current_page": number, "last_page": last},
	})
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, message string) {
	write(w, status, map[string]any{"errors": []string{message}})
}

func decode(r *http.Request) map[string]any {
	body := map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body
}

func text(body map[string]any, key string) string {
	s, _ := body[key].(string)
	return s
}

func texts(body map[string]any, key string) []string {
	var out []string
	list, _ := body[key].([]any)
	for _, item := range list {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

func newID() string { return uuid.NewString() }

// Requests returns the requests since the last call, as "GET /path".
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := slices.Clone(a.requests)
	a.requests = nil
	return out
}
