// Package fault injects failures into an API, for tests and rehearsals. It owns the configured
// faults and selects the one that applies to a call. It knows HTTP but no devices. Faults are kept
// in memory: a restart removes them. Start with Set.
package fault

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Kind is the type of a fault.
type Kind string

// Kinds of faults. The first group affects responses, the second affects devices.
const (
	// RateLimit responds with 429 and the usual headers.
	RateLimit Kind = "rate-limit"
	// RateLimitHTML responds with 403 and an HTML page, as firewalls do.
	RateLimitHTML Kind = "rate-limit-html"
	// ServerError responds with Status, by default 500.
	ServerError Kind = "server-error"
	// Timeout accepts the call and never responds.
	Timeout Kind = "timeout"
	// Truncate executes the call and sends half of the response.
	Truncate Kind = "truncate"

	// NoCapacity rejects new devices, as a full metro does.
	NoCapacity Kind = "no-capacity"
	// FailProvisioning fails provisioning after Delay. An on-demand device is then removed, and
	// reading it returns Status, by default 403. A reserved device is kept in state failed.
	FailProvisioning Kind = "fail-provisioning"
	// SlowProvisioning keeps devices queued for Delay.
	SlowProvisioning Kind = "slow-provisioning"
	// RequireSSHKeys rejects devices without SSH keys.
	RequireSSHKeys Kind = "require-ssh-keys"
	// AddressQuota rejects new address blocks, or leaves them pending.
	AddressQuota Kind = "address-quota"
)

var kinds = []Kind{RateLimit, RateLimitHTML, ServerError, Timeout, Truncate, NoCapacity, FailProvisioning, SlowProvisioning, RequireSSHKeys, AddressQuota}

// Fault is a failure to inject, and when.
type Fault struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Method and Path select calls: an HTTP method, and a pattern such as /devices/* without the
	// version prefix. Empty selects all.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Hostname selects devices by a pattern, for faults of devices only.
	Hostname string `json:"hostname,omitempty"`
	// Count is how often the fault is injected; 0 means until it is removed.
	Count int `json:"count,omitempty"`
	// Probability is the probability of injection; 0 means always.
	Probability float64 `json:"probability,omitempty"`
	// After executes the call first, so that only the response is lost. Truncate always does.
	After  bool     `json:"after,omitempty"`
	Status int      `json:"status,omitempty"`
	Delay  Duration `json:"delay,omitempty"`
	// Struck counts the injections.
	Struck int `json:"struck"`
}

// Duration is a time.Duration encoded as in Go, such as "1.5s".
type Duration time.Duration

// MarshalText encodes the duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText decodes the duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Validate reports what is wrong with a fault.
func (f Fault) Validate() error {
	if !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("unknown kind %q: use one of %v", f.Kind, kinds)
	}
	if f.Probability < 0 || f.Probability > 1 {
		return fmt.Errorf("probability %v is not between 0 and 1", f.Probability)
	}
	if f.Count < 0 || f.Delay < 0 {
		return fmt.Errorf("count and delay cannot be negative")
	}
	for _, pattern := range []string{f.Path, f.Hostname} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		return fmt.Errorf("status %d is not an error", f.Status)
	}
	return nil
}

// ofCalls reports whether the fault affects responses.
func (f Fault) ofCalls() bool {
	return slices.Index(kinds, f.Kind) < slices.Index(kinds, NoCapacity)
}

// Set holds the faults of all projects.
type Set struct {
	mu       sync.Mutex
	projects map[string][]*Fault
	roll     func() float64
}

// NewSet returns a set without faults.
func NewSet() *Set { return &Set{projects: map[string][]*Fault{}, roll: rand.Float64} }

// Add adds a fault to a project and returns it with its ID.
func (s *Set) Add(project string, f Fault) (Fault, error) {
	if err := f.Validate(); err != nil {
		return Fault{}, err
	}
	f.ID, f.Struck = uuid.NewString(), 0
	s.mu.Lock()
	defer s.mu.Unlock()
	s.projects[project] = append(s.projects[project], &f)
	return f, nil
}

// List returns the faults of a project, including exhausted ones.
func (s *Set) List(project string) []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, 0, len(s.projects[project]))
	for _, f := range s.projects[project] {
		out = append(out, *f)
	}
	return out
}

// Remove removes one fault, or all of a project if id is empty.
func (s *Set) Remove(project, id string) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.projects[project])
	s.projects[project] = slices.DeleteFunc(s.projects[project], func(f *Fault) bool { return id == "" || f.ID == id })
	return len(s.projects[project]) < before
}

// StrikeCall returns the fault to inject into a call of a project, if any. The path has no version
// prefix.
func (s *Set) StrikeCall(project string, r *http.Request, route string) (Fault, bool) {
	return s.selectFault(project, func(f *Fault) bool {
		return f.ofCalls() && (f.Method == "" || strings.EqualFold(f.Method, r.Method)) && (f.Path == "" || matches(f.Path, route))
	})
}

// StrikeDevice returns the fault of a kind to inject into a new device, if any.
func (s *Set) StrikeDevice(project string, kind Kind, hostname string) (Fault, bool) {
	return s.selectFault(project, func(f *Fault) bool {
		return f.Kind == kind && (f.Hostname == "" || matches(f.Hostname, hostname))
	})
}

func (s *Set) selectFault(project string, match func(*Fault) bool) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.projects[project] {
		if f.Count > 0 && f.Struck >= f.Count || !match(f) {
			continue
		}
		if f.Probability > 0 && s.roll() >= f.Probability {
			continue
		}
		f.Struck++
		return *f, true
	}
	return Fault{}, false
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}
