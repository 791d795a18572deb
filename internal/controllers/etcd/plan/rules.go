package plan

import (
	"cmp"
	"slices"
)

// learner completes the change that has begun, or gives it up.
func (w World) learner() (Action, bool) {
	i := slices.IndexFunc(w.Members, func(m Member) bool { return m.Learner })
	if i < 0 {
		return Action{}, false
	}
	l := w.Members[i]
	remove := Action{Kind: Remove, Member: l.ID}
	m, ok := w.machineOf(l)
	switch {
	case !ok && l.Name != "":
		return remove, true // its data is gone
	case !ok:
		return w.machineFor(l), true
	case m.Deleting, m.Failed, m.Outdated, m.Overdue && !l.Healthy, m.Slot >= w.Replicas:
		return remove, true
	case l.Healthy:
		return Action{Kind: Promote, Member: l.ID}, true
	default:
		return Action{Kind: Wait, Reason: Joining, Machine: m.Name}, true
	}
}

// machineFor orders the machine of a learner. There is never more than one besides those wanted.
func (w World) machineFor(l Member) Action {
	slot := l.At
	if slot == Spare {
		var wanted bool
		if slot, wanted = w.needsReplacement(); !wanted {
			return Action{Kind: Remove, Member: l.ID}
		}
	}
	switch {
	case slot >= w.Replicas:
		return Action{Kind: Remove, Member: l.ID}
	case w.crowded():
		return Action{Kind: Wait, Reason: Deprovisioning}
	default:
		return Action{Kind: Order, Slot: slot, At: l.At}
	}
}

// orphans deletes machines whose members were removed.
func (w World) orphans() (Action, bool) {
	for _, m := range w.Machines {
		if _, ok := w.memberOn(m); !ok && !m.Deleting {
			return Action{Kind: Delete, Machine: m.Name}, true
		}
	}
	return Action{}, false
}

// pairs removes the worse of two members of a slot. While both are needed for quorum, other changes
// come first.
func (w World) pairs() (Action, bool) {
	for slot := range w.Replicas {
		if all := w.votersIn(slot); len(all) > 1 {
			a := w.remove(all[0])
			return a, a.Kind != Wait
		}
	}
	return Action{}, false
}

// surplus removes members without a slot, the last slot first. While they are needed for quorum,
// other changes come first.
func (w World) surplus() (Action, bool) {
	var extra []Member
	for _, v := range w.voters() {
		if slot := w.slotOf(v); slot == Spare || slot >= w.Replicas {
			extra = append(extra, v)
		}
	}
	if len(extra) == 0 {
		return Action{}, false
	}
	slices.SortStableFunc(extra, func(a, b Member) int {
		return cmp.Or(cmp.Compare(w.badness(b), w.badness(a)), cmp.Compare(w.slotOf(b), w.slotOf(a)))
	})
	a := w.remove(extra[0])
	return a, a.Kind != Wait
}

// settle moves the slot's address to a member that has replaced another.
func (w World) settle() (Action, bool) {
	for _, v := range w.voters() {
		m, ok := w.machineOf(v)
		if v.At != Spare || !ok || !m.Active || m.Deleting || len(w.votersIn(m.Slot)) > 1 {
			continue
		}
		if w.Holders[m.Slot] != m.Name {
			return Action{Kind: Assign, At: m.Slot, Machine: m.Name}, true
		}
		return Action{Kind: UpdatePeer, At: m.Slot, Member: v.ID}, true
	}
	return Action{}, false
}

// tidy frees the spare address, and releases those of slots that are no longer wanted.
func (w World) tidy() (Action, bool) {
	used := func(at int) bool {
		return slices.ContainsFunc(w.Members, func(m Member) bool { return m.At == at })
	}
	if w.Holders[Spare] != "" && !used(Spare) {
		return Action{Kind: Unassign, At: Spare}, true
	}
	for _, slot := range w.Reserved {
		if slot >= w.Replicas && !used(slot) {
			return Action{Kind: Release, At: slot}, true
		}
	}
	return Action{}, false
}

// replaceBroken starts to replace a member that can't recover, or has not for too long. One that
// broke before it had its slot's address comes first: that address is free, the spare is not.
func (w World) replaceBroken() (Action, bool) {
	at := Unknown
	for slot := range w.Replicas {
		all := w.votersIn(slot)
		switch {
		case len(all) != 1 || !w.broken(all[0]):
		case all[0].At == Spare:
			return w.join(slot), true
		default:
			at = Spare
		}
	}
	if at == Unknown {
		return Action{}, false
	}
	return w.join(at), true
}

// awaitHealth holds back changes that are not urgent while a member is unhealthy.
func (w World) awaitHealth() (Action, bool) {
	if slices.ContainsFunc(w.voters(), func(m Member) bool { return !m.Healthy }) {
		return Action{Kind: Wait, Reason: Unhealthy}, true
	}
	return Action{}, false
}

// grow adds a member for a slot without one.
func (w World) grow() (Action, bool) {
	for slot := range w.Replicas {
		if len(w.votersIn(slot)) == 0 {
			return w.join(slot), true
		}
	}
	return Action{}, false
}

// replaceOutdated starts to replace a member whose machine has an earlier spec.
func (w World) replaceOutdated() (Action, bool) {
	for slot := range w.Replicas {
		all := w.votersIn(slot)
		if m, ok := w.machineOf(all[0]); ok && m.Outdated {
			return w.join(Spare), true
		}
	}
	return Action{}, false
}

// awaitMachines waits until machines without members are gone.
func (w World) awaitMachines() (Action, bool) {
	if len(w.Machines) > w.Replicas {
		return Action{Kind: Wait, Reason: Deprovisioning}, true
	}
	return Action{}, false
}

// join adds a learner, once no machine is left that would be one too many, its address is free, and
// its promotion would leave etcd with quorum.
func (w World) join(at int) Action {
	voters := w.voters()
	switch {
	case w.crowded():
		return Action{Kind: Wait, Reason: Deprovisioning}
	case slices.ContainsFunc(w.Members, func(m Member) bool { return m.At == at }), healthy(voters)+1 < quorum(len(voters)+1):
		return Action{Kind: Wait, Reason: Unhealthy}
	default:
		return Action{Kind: AddLearner, At: at}
	}
}

// remove removes a voter. A leader hands over first, since an election stops writes for a second. A
// removal that would cost etcd its quorum waits.
func (w World) remove(v Member) Action {
	others := slices.DeleteFunc(w.voters(), func(m Member) bool { return m.ID == v.ID })
	if healthy(others) < quorum(len(others)) {
		return Action{Kind: Wait, Reason: Unhealthy}
	}
	if v.Leader && v.Healthy {
		heir := slices.MinFunc(others, func(a, b Member) int { return cmp.Compare(w.badness(a), w.badness(b)) })
		return Action{Kind: MoveLeader, Member: heir.ID}
	}
	return Action{Kind: Remove, Member: v.ID}
}
