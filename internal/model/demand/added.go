package demand

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/drover-dev/drover/internal/model/spec"
)

// Added returns the machines that a change needs in addition to those that the cluster has:
// machines of new and larger groups, and the spare machines of a rollout. External etcd is replaced
// before the control plane, and that before the workers, so that only the largest part of the spare
// machines is needed at a time. A group that gets another plan needs all machines of the new one.
func Added(was, is *spec.Config) []Machines {
	before := groups(was)
	var out total
	var spare [stages]total
	for _, g := range groups(is) {
		i := slices.IndexFunc(before, func(o group) bool { return o.name == g.name && o.machines.sameKind(g.machines) })
		if i < 0 {
			out.add(g.machines, g.machines.Count)
			continue
		}
		out.add(g.machines, g.machines.Count-before[i].machines.Count)
		if before[i].machines.Count > 0 && !equality.Semantic.DeepEqual(before[i].content, g.content) {
			spare[g.stage].add(g.machines, g.surge)
		}
	}
	for _, m := range slices.Concat(spare[:]...) {
		if !slices.ContainsFunc(out, m.sameKind) {
			out = append(out, Machines{Plan: m.Plan, Metro: m.Metro, Facility: m.Facility})
		}
	}
	for i := range out {
		most := 0
		for _, s := range spare {
			most = max(most, countOf(s, out[i]))
		}
		out[i].Count += most
	}
	return out
}

func countOf(all []Machines, kind Machines) int {
	if i := slices.IndexFunc(all, kind.sameKind); i >= 0 {
		return all[i].Count
	}
	return 0
}
