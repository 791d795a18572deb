// Package demand computes how many machines of which plan a cluster needs: all of it, and what a
// change adds, including the spare machines of a rollout. Commands, webhooks and controllers share
// it. It is pure: whether the machines exist is for others to find out. Start with Of and Added.
package demand

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// The plan and metro of local machines, which a DockerDatacenterConfig selects.
const (
	LocalPlan  = "local.small"
	LocalMetro = "da"
)

// WarningPrefix starts every warning about capacity at admission. Commands recognize it.
const WarningPrefix = "not enough machines: "

// Machines are equal machines in one place.
type Machines struct {
	Plan     string `json:"plan"`
	Metro    string `json:"metro,omitempty"`
	Facility string `json:"facility,omitempty"`
	Count    int    `json:"count"`
}

// String describes machines, such as "3 of plan c3.small.x86 in da".
func (m Machines) String() string {
	return fmt.Sprintf("%d of plan %s in %s", m.Count, m.Plan, cmp.Or(m.Metro, m.Facility))
}

// Check is a question whether machines are available to the owner of credentials. Commands ask it
// with an annotation.
type Check struct {
	Credentials string     `json:"credentials"`
	Machines    []Machines `json:"machines"`
}

// maxKinds bounds a question.
const maxKinds = 100

// IsValid reports whether a question can be answered.
func (c *Check) IsValid() bool {
	return len(c.Machines) <= maxKinds && !slices.ContainsFunc(c.Machines, func(m Machines) bool { return m.Count < 0 || m.Plan == "" })
}

// Describe lists machines.
func Describe(all []Machines) string {
	var out []string
	for _, m := range all {
		out = append(out, m.String())
	}
	return strings.Join(out, ", ")
}

// Warning returns the warning that machines are not available.
func Warning(missing []Machines) string { return WarningPrefix + Describe(missing) }

// Credentials returns the name of the Secret with the credentials for the machines of a cluster.
func Credentials(c *spec.Config) string {
	if c.Packet != nil {
		return c.Packet.CredentialsName()
	}
	return anywherev1.LocalCredentials
}

// Of returns the machines that a cluster needs. Machines on reserved hardware are not counted.
func Of(c *spec.Config) []Machines {
	var out total
	for _, g := range groups(c) {
		out.add(g.machines, g.machines.Count)
	}
	return out
}

// Most returns the machines that a cluster may have: an autoscaled group counts with its maximum,
// and reserved hardware and machines of unknown plans count too.
func Most(c *spec.Config) []Machines {
	var out total
	for _, g := range allGroups(c) {
		out.add(g.machines, max(g.machines.Count, g.most))
	}
	return out
}

// Less returns the machines that remain after others are taken away.
func Less(all, others []Machines) []Machines {
	var out total
	for _, m := range all {
		i := slices.IndexFunc(others, m.sameKind)
		if i >= 0 {
			m.Count -= others[i].Count
		}
		out.add(m, max(m.Count, 0))
	}
	return out
}

// Count returns the number of machines.
func Count(all []Machines) int {
	n := 0
	for _, m := range all {
		n += m.Count
	}
	return n
}

// total has one entry per kind of machines, in the order in which they are added.
type total []Machines

func (t *total) add(m Machines, count int) {
	if count <= 0 {
		return
	}
	i := slices.IndexFunc(*t, m.sameKind)
	if i < 0 {
		m.Count = 0
		*t, i = append(*t, m), len(*t)
	}
	(*t)[i].Count += count
}

func (m Machines) sameKind(other Machines) bool {
	m.Count = other.Count
	return m == other
}
