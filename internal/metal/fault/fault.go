// Package fault makes an API fail on demand, for tests and rehearsals. It owns
// the faults that were asked for and decides which of them strikes a call; it
// knows HTTP, but no device. Faults are kept in memory: a restart ends them.
// Start with Set.
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

// Kind is what goes wrong.
type Kind string

// Kinds. The first group answers calls wrongly, the second changes what
// happens to devices.
const (
	// RateLimit answers 429 with the usual headers.
	RateLimit Kind = "rate-limit"
	// RateLimitHTML answers 403 with a page of HTML, as firewalls do.
	RateLimitHTML Kind = "rate-limit-html"
	// ServerError answers Status, 500 if not set.
	ServerError Kind = "server-error"
	// Timeout accepts the call and never answers.
	Timeout Kind = "timeout"
	// Truncate carries the call out and cuts the answer in half.
	Truncate Kind = "truncate"

	// NoCapacity refuses new devices as a full metro does.
	NoCapacity Kind = "no-capacity"
	// FailProvisioning lets provisioning fail after Delay. An on-demand device
	// then vanishes: reading it answers Status, 403 if not set. A reserved one
	// stays, failed.
	FailProvisioning Kind = "fail-provisioning"
	// SlowProvisioning keeps devices queued for Delay.
	SlowProvisioning Kind = "slow-provisioning"
	// RequireSSHKeys refuses devices that would have no key.
	RequireSSHKeys Kind = "require-ssh-keys"
	// AddressQuota refuses, or leaves pending, new address blocks.
	AddressQuota Kind = "address-quota"
)

var kinds = []Kind{RateLimit, RateLimitHTML, ServerError, Timeout, Truncate, NoCapacity, FailProvisioning, SlowProvisioning, RequireSSHKeys, AddressQuota}

// Fault is one thing that goes wrong, and when.
type Fault struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Method and Path choose calls: GET, POST, …, and a pattern such as
	// /devices/* without the version prefix. Empty means all.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Hostname chooses devices, by a pattern; for faults of devices only.
	Hostname string `json:"hostname,omitempty"`
	// Count is how often it strikes; 0 means until it is removed.
	Count int `json:"count,omitempty"`
	// Probability is how likely it strikes; 0 means always.
	Probability float64 `json:"probability,omitempty"`
	// After lets the call be carried out first, so that only the answer is
	// lost. Truncate always does.
	After  bool     `json:"after,omitempty"`
	Status int      `json:"status,omitempty"`
	Delay  Duration `json:"delay,omitempty"`
	// Struck counts how often it did.
	Struck int `json:"struck"`
}

// Duration is a time.Duration that is written as in Go, "1.5s".
type Duration time.Duration

// MarshalText writes it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads it.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Validate says what is wrong with a fault.
func (f Fault) Validate() error {
	if !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("kind %q is not known: use one of %v", f.Kind, kinds)
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

// ofCalls tells whether the fault is about answering calls.
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

// Add puts a fault on a project and returns it with its id.
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

// List returns the faults of a project, also those that are used up.
func (s *Set) List(project string) []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, 0, len(s.projects[project]))
	for _, f := range s.projects[project] {
		out = append(out, *f)
	}
	return out
}

// Remove ends one fault, or all of a project if id is empty.
func (s *Set) Remove(project, id string) (found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.projects[project])
	s.projects[project] = slices.DeleteFunc(s.projects[project], func(f *Fault) bool { return id == "" || f.ID == id })
	return len(s.projects[project]) < before
}

// StrikeCall returns the fault that strikes a call of a project, if any. The
// path is without the version prefix.
func (s *Set) StrikeCall(project string, r *http.Request, route string) (Fault, bool) {
	return s.strike(project, func(f *Fault) bool {
		return f.ofCalls() && (f.Method == "" || strings.EqualFold(f.Method, r.Method)) && (f.Path == "" || matches(f.Path, route))
	})
}

// StrikeDevice returns the fault of a kind that strikes a new device, if any.
func (s *Set) StrikeDevice(project string, kind Kind, hostname string) (Fault, bool) {
	return s.strike(project, func(f *Fault) bool {
		return f.Kind == kind && (f.Hostname == "" || matches(f.Hostname, hostname))
	})
}

func (s *Set) strike(project string, match func(*Fault) bool) (Fault, bool) {
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
