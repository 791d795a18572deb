// Package quota compares what the clusters of a namespace may have with what its ResourceQuotas
// allow: clusters, machines and CPUs. Webhooks, controllers and commands share it. It is pure.
// Start with Hard and Exceeded.
package quota

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Keys of a ResourceQuota.
const (
	Clusters = "drover.dev/clusters"
	Machines = "drover.dev/machines"
	CPUs     = "drover.dev/cpus"
)

// Keys lists all keys.
func Keys() []string { return []string{Clusters, Machines, CPUs} }

// Amounts are amounts by key.
type Amounts map[string]int64

// Hard returns the quotas of a namespace. Of several, the smallest holds. Keys without a quota are
// absent.
func Hard(all []corev1.ResourceQuota) Amounts {
	out := Amounts{}
	for i := range all {
		for _, key := range Keys() {
			limit, found := all[i].Spec.Hard[corev1.ResourceName(key)]
			if !found {
				continue
			}
			if least, known := out[key]; !known || limit.Value() < least {
				out[key] = limit.Value()
			}
		}
	}
	return out
}

// Of returns what a cluster counts as: an autoscaled group with its maximum, reserved hardware as
// any other. Plans of unknown size have no CPUs.
func Of(c *spec.Config, cpus func(plan string) int) Amounts {
	out := Amounts{Clusters: 1}
	for _, m := range demand.Most(c) {
		out[Machines] += int64(m.Count)
		out[CPUs] += int64(m.Count) * int64(cpus(m.Plan))
	}
	return out
}

// Add adds amounts.
func (a Amounts) Add(b Amounts) Amounts {
	out := Amounts{}
	for _, key := range Keys() {
		out[key] = a[key] + b[key]
	}
	return out
}

// Exceeded returns why a change is not allowed, or "". Used is what others use; was is what the
// cluster used before, and is what it will. A change that needs no more of a resource is allowed
// whatever its quota, so that quotas can be lowered.
func Exceeded(hard, used, was, is Amounts) string {
	var problems []string
	for _, key := range Keys() {
		limit, limited := hard[key]
		if total := used[key] + is[key]; limited && is[key] > was[key] && total > limit {
			problems = append(problems, fmt.Sprintf("%s: %d of %d", strings.TrimPrefix(key, "drover.dev/"), total, limit))
		}
	}
	if len(problems) == 0 {
		return ""
	}
	return "exceeded quota of the namespace: " + strings.Join(problems, ", ")
}
