package capacity

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/model/demand"
)

// Claim is what one Cluster claims of the machines of a project.
type Claim struct {
	Cluster *anywherev1.Cluster
	// Granted means that the Cluster may use its machines: it does not wait.
	Granted bool
	// Needs are the machines that do not exist yet.
	Needs []demand.Machines
	// Has are the machines that exist.
	Has []demand.Machines
}

// Queue is the claims of a project: those that are granted first, then those that wait, oldest
// first.
type Queue []Claim

// newQueue sorts claims.
func newQueue(claims []Claim) Queue {
	slices.SortFunc(claims, func(a, b Claim) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		default:
			return 0
		}
	})
	return claims
}

func (c Claim) before(other Claim) bool {
	if c.Granted != other.Granted {
		return c.Granted
	}
	return Precedes(c.Cluster, other.Cluster)
}

// Precedes orders Clusters by age. Of those that were created within a second, either may be first.
func Precedes(a, b *anywherev1.Cluster) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.UID < b.UID
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// demands returns what all claims need, in their order.
func (q Queue) demands() []client.Demand {
	var out []client.Demand
	for _, c := range q {
		out = append(out, c.demands()...)
	}
	return out
}

// demands returns what a claim needs. A Cluster that waits needs all of it at once. One that does
// not takes each machine that is there.
func (c Claim) demands() []client.Demand {
	if !c.Granted {
		return demandsOf(c.Needs)
	}
	var out []client.Demand
	for _, d := range demandsOf(c.Needs) {
		for one := d; d.Quantity > 0; d.Quantity-- {
			one.Quantity = 1
			out = append(out, one)
		}
	}
	return out
}

func demandsOf(all []demand.Machines) []client.Demand {
	var out []client.Demand
	for _, m := range all {
		out = append(out, client.Demand{Plan: m.Plan, Metro: m.Metro, Facility: m.Facility, Quantity: m.Count})
	}
	return out
}

// fitting returns the claims that may be granted, given which demands are available, and the first
// one that may not. A claim needs room for itself and for all claims before it, so that a small
// Cluster never overtakes an older, large one.
func (q Queue) fitting(available []bool) (granted []types.UID, blocked *Claim) {
	for i := range q {
		c, fits := &q[i], true
		for range c.demands() {
			fits, available = fits && len(available) > 0 && available[0], available[min(1, len(available)):]
		}
		switch {
		case c.Granted:
		case !fits:
			return granted, c
		default:
			granted = append(granted, c.Cluster.UID)
		}
	}
	return granted, nil
}

// without returns the queue without the claims of some Clusters.
func (q Queue) without(skip func(types.UID) bool) Queue {
	return slices.DeleteFunc(slices.Clone(q), func(c Claim) bool { return skip(c.Cluster.UID) })
}

// beyond returns what a claim needs even if all other Clusters of the project were gone.
func (q Queue) beyond(c *Claim) []demand.Machines {
	needs := c.Needs
	for i := range q {
		needs = demand.Less(needs, q[i].Has)
	}
	return needs
}

// fingerprint changes with everything in the queue that matters.
func (q Queue) fingerprint() string {
	var out strings.Builder
	for _, c := range q {
		fmt.Fprintf(&out, "%s %t %v %v\n", c.Cluster.UID, c.Granted, c.Needs, c.Has)
	}
	return out.String()
}

// Shortage is why a Cluster has to wait.
type Shortage struct {
	// Needs is what the Cluster needs.
	Needs []demand.Machines
	// Behind means that older Clusters come first.
	Behind bool
	// TooLarge means that there are not enough machines even without other Clusters.
	TooLarge bool
	// Quota is which quota of the namespace is exceeded, if that is why.
	Quota string
}

// Reason is the reason of the condition.
func (s Shortage) Reason() string {
	if s.Quota != "" {
		return anywherev1.WaitingForQuotaReason
	}
	return anywherev1.WaitingForCapacityReason
}

// Message describes a shortage to the creator of the Cluster. It names no other Cluster.
func (s Shortage) Message() string {
	if s.Quota != "" {
		return "Waiting for quota: " + s.Quota
	}
	message := "Waiting for machines: " + demand.Describe(s.Needs) + " are not available"
	switch {
	case s.TooLarge:
		return message + ", even without other clusters"
	case s.Behind:
		return message + ", or older clusters come first"
	}
	return message
}
