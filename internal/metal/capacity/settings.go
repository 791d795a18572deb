package capacity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drover-dev/drover/internal/metal/catalog"
)

// Settings are what an administrator decides. The zero value has the default overcommit and no
// limits.
type Settings struct {
	Overcommit Overcommit `json:"overcommit"`
	// Limits bound the devices of plans in metros.
	Limits []Limit `json:"limits"`
}

// Overcommit is how many times each resource of a host is given to machines. Zero is the default.
type Overcommit struct {
	CPUs   float64 `json:"cpus"`
	Memory float64 `json:"memory"`
	Disk   float64 `json:"disk"`
}

// defaultOvercommit suits machines that run Kubernetes: most of them are idle, few use all of their
// memory, and a full disk stops all of them.
var defaultOvercommit = Overcommit{CPUs: 16, Memory: 2, Disk: 1}

// maxOvercommit keeps products in range.
const maxOvercommit = 1000

// Limit bounds the devices of a plan in a metro. An empty plan or metro means any.
type Limit struct {
	Plan    string `json:"plan,omitempty"`
	Metro   string `json:"metro,omitempty"`
	Devices int    `json:"devices"`
}

// Quota bounds what a project uses. Nil is unlimited.
type Quota struct {
	Machines    *int64 `json:"machines"`
	CPUs        *int64 `json:"cpus"`
	MemoryBytes *int64 `json:"memory_bytes"`
}

// Complete fills in defaults.
func (s Settings) Complete() Settings {
	o := &s.Overcommit
	o.CPUs, o.Memory, o.Disk = cmp.Or(o.CPUs, defaultOvercommit.CPUs), cmp.Or(o.Memory, defaultOvercommit.Memory), cmp.Or(o.Disk, defaultOvercommit.Disk)
	if s.Limits == nil {
		s.Limits = []Limit{}
	}
	return s
}

// Problems returns everything that is wrong with settings.
func (s Settings) Problems() []string {
	var wrong []string
	for _, o := range []struct {
		name  string
		value float64
	}{{"cpus", s.Overcommit.CPUs}, {"memory", s.Overcommit.Memory}, {"disk", s.Overcommit.Disk}} {
		if !(o.value >= 0 && o.value <= maxOvercommit) { // Also rejects what is not a number.
			wrong = append(wrong, fmt.Sprintf("overcommit.%s must be from 0 (the default) to %d", o.name, maxOvercommit))
		}
	}
	for i, l := range s.Limits {
		wrong = append(wrong, l.problems()...)
		if slices.ContainsFunc(s.Limits[:i], func(x Limit) bool { return x.Plan == l.Plan && x.Metro == l.Metro }) {
			wrong = append(wrong, fmt.Sprintf("limits has two entries for plan %q in metro %q", l.Plan, l.Metro))
		}
	}
	return wrong
}

func (l Limit) problems() []string {
	var wrong []string
	if p, found := catalog.FindPlan(l.Plan); l.Plan != "" && (!found || p.Slug != l.Plan) {
		wrong = append(wrong, fmt.Sprintf("%s is not a valid plan", l.Plan))
	}
	if m, found := catalog.FindMetro(l.Metro); l.Metro != "" && (!found || m.Code != l.Metro) {
		wrong = append(wrong, fmt.Sprintf("%s is not a valid metro", l.Metro))
	}
	if l.Devices < 0 {
		wrong = append(wrong, "devices of a limit can't be negative")
	}
	return wrong
}

// covers reports whether a limit applies to a plan in a metro.
func (l Limit) covers(plan, metro string) bool {
	return (l.Plan == "" || l.Plan == plan) && (l.Metro == "" || l.Metro == metro)
}

// Problems returns everything that is wrong with a quota.
func (q Quota) Problems() []string {
	var wrong []string
	for _, v := range []struct {
		name  string
		value *int64
	}{{"machines", q.Machines}, {"cpus", q.CPUs}, {"memory_bytes", q.MemoryBytes}} {
		if v.value != nil && *v.value < 0 {
			wrong = append(wrong, v.name+" can't be negative")
		}
	}
	return wrong
}

// IsUnlimited reports whether a quota bounds nothing.
func (q Quota) IsUnlimited() bool { return q == Quota{} }
