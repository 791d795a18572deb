package plan

import (
	"cmp"
	"slices"
)

// quorum is how many of n voters must be healthy.
func quorum(n int) int { return n/2 + 1 }

func healthy(members []Member) int {
	n := 0
	for _, m := range members {
		if m.Healthy {
			n++
		}
	}
	return n
}

// voters returns all members that count for quorum.
func (w World) voters() []Member {
	return slices.DeleteFunc(slices.Clone(w.Members), func(m Member) bool { return m.Learner })
}

// crowded reports whether there is a machine besides those of members already: there is never more
// than one.
func (w World) crowded() bool { return len(w.Machines) > max(w.Replicas, len(w.voters())) }

// machineOf returns the machine of a member: by its name or, if it never started, by the address
// that it is to join with.
func (w World) machineOf(m Member) (Machine, bool) {
	i := slices.IndexFunc(w.Machines, func(c Machine) bool {
		if m.Name != "" {
			return c.Name == m.Name
		}
		return c.At == m.At && !w.started(c.Name)
	})
	if i < 0 {
		return Machine{}, false
	}
	return w.Machines[i], true
}

// started reports whether a member of that name has started.
func (w World) started(name string) bool {
	return slices.ContainsFunc(w.Members, func(m Member) bool { return m.Name == name })
}

// memberOn returns the member of a machine.
func (w World) memberOn(c Machine) (Member, bool) {
	i := slices.IndexFunc(w.Members, func(m Member) bool {
		found, ok := w.machineOf(m)
		return ok && found.Name == c.Name
	})
	if i < 0 {
		return Member{}, false
	}
	return w.Members[i], true
}

// slotOf returns the slot of a voter. One that has lost its machine has that of its address, which
// may be the spare.
func (w World) slotOf(v Member) int {
	if m, ok := w.machineOf(v); ok {
		return m.Slot
	}
	return v.At
}

// votersIn returns the voters of a slot, the worst first.
func (w World) votersIn(slot int) []Member {
	all := slices.DeleteFunc(w.voters(), func(m Member) bool { return w.slotOf(m) != slot })
	slices.SortStableFunc(all, func(a, b Member) int { return cmp.Compare(w.badness(b), w.badness(a)) })
	return all
}

// badness orders members by how much they should be removed. Among equals, one at the spare address
// is cheaper to remove.
func (w World) badness(v Member) int {
	score := 0
	m, ok := w.machineOf(v)
	switch {
	case !ok, m.Deleting, m.Failed:
		score = 8
	case !v.Healthy:
		score = 6
	case m.Outdated:
		score = 2
	}
	if v.At == Spare {
		score++
	}
	return score
}

// broken reports whether to replace a voter although its spec is current.
func (w World) broken(v Member) bool {
	m, ok := w.machineOf(v)
	return !ok || m.Deleting || m.Failed || m.Overdue && !v.Healthy
}

// needsReplacement returns the slot whose member a learner at the spare address is to replace.
func (w World) needsReplacement() (int, bool) {
	outdated := -1
	for slot := range w.Replicas {
		all := w.votersIn(slot)
		if len(all) != 1 {
			continue
		}
		if w.broken(all[0]) {
			return slot, true
		}
		if m, _ := w.machineOf(all[0]); m.Outdated && outdated < 0 {
			outdated = slot
		}
	}
	return outdated, outdated >= 0
}
