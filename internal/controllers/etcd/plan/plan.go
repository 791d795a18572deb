// Package plan decides how to change the membership of etcd: Next is a pure function from what is
// known of etcd and its machines to one action. It knows nothing of Kubernetes, the Packet API or
// clients of etcd; package cluster gathers its input and carries out its decision.
//
// Each member has a slot, whose address is the endpoint for clients and never changes. One more
// address, the spare, is where a replacement joins while its predecessor still has the slot's:
//
//	                 spare          slot's address     members
//	                 ─────          ──────────────     ───────
//	add a learner    new            old                old, (new)
//	promote it       new            old                old, new
//	move the leader, remove the predecessor            new
//	move the address new            new                new
//	update the peer  free           new                new
//
// So all addresses of a member are known before its machine exists, and its certificates can be
// issued by then. There is one change at a time, and no action leaves etcd without quorum. Start
// with Next; the rules are below it in their order.
package plan

import "slices"

// Spare is the address besides those of slots, which are 0 and up. Unknown is none of ours.
const (
	Spare   = -1
	Unknown = -2
)

// World is what is known.
type World struct {
	// Replicas is the wanted number of members.
	Replicas int
	// Initialized means that etcd has formed.
	Initialized bool
	// Quorum means that etcd has confirmed Members.
	Quorum   bool
	Members  []Member
	Machines []Machine
	// Holders are the machines that have the addresses.
	Holders map[int]string
	// Reserved are the slots whose addresses are reserved.
	Reserved []int
}

// Member is a member of etcd.
type Member struct {
	ID uint64
	// Name is that of its machine; empty if it never started.
	Name string
	// At is the address that other members reach it at.
	At                       int
	Learner, Leader, Healthy bool
}

// Machine is a machine for a member.
type Machine struct {
	Name string
	Slot int
	// At is the address that its member joins with.
	At int
	// Active means that it is running, Deleting that it is being deleted, Failed that it never will
	// run.
	Active, Deleting, Failed bool
	// Outdated means that its spec or certificate must be replaced.
	Outdated bool
	// Overdue means that its member is unhealthy for too long.
	Overdue bool
}

// Kind is the kind of an action.
type Kind string

// The kinds of actions.
const (
	Done       Kind = "Done"
	Wait       Kind = "Wait"
	Order      Kind = "Order"      // a machine for Slot, which joins at At
	Assign     Kind = "Assign"     // the address At to Machine
	Unassign   Kind = "Unassign"   // the address At
	Release    Kind = "Release"    // the address At of a slot that is no longer wanted
	AddLearner Kind = "AddLearner" // at At
	Promote    Kind = "Promote"    // the learner Member
	MoveLeader Kind = "MoveLeader" // to Member
	Remove     Kind = "Remove"     // Member
	UpdatePeer Kind = "UpdatePeer" // of Member to At
	Delete     Kind = "Delete"     // Machine
)

// Reason is why to wait.
type Reason string

// The reasons to wait.
const (
	Forming        Reason = "Forming"        // etcd has not formed yet
	NoQuorum       Reason = "NoQuorum"       // etcd accepts no changes
	Unhealthy      Reason = "Unhealthy"      // a member may recover
	Joining        Reason = "Joining"        // a learner is not ready yet
	Deprovisioning Reason = "Deprovisioning" // a machine is being deleted
	Foreign        Reason = "Foreign"        // a member is not on a machine of ours
)

// Action is one step.
type Action struct {
	Kind     Kind
	Reason   Reason
	Slot, At int
	Machine  string
	Member   uint64
}

// Next returns what to do next.
func Next(w World) Action {
	switch {
	case !w.Initialized:
		return w.first(w.bootstrap, w.assign, w.wait(Forming))
	case !w.Quorum:
		return w.first(w.assignFree, w.wait(NoQuorum))
	default:
		return w.first(w.foreign, w.assign, w.learner, w.orphans, w.pairs, w.surplus, w.settle, w.tidy,
			w.replaceBroken, w.awaitHealth, w.grow, w.replaceOutdated, w.awaitMachines)
	}
}

// first returns the action of the first rule that has one.
func (w World) first(rules ...func() (Action, bool)) Action {
	for _, rule := range rules {
		if a, ok := rule(); ok {
			return a
		}
	}
	return Action{Kind: Done}
}

func (w World) wait(r Reason) func() (Action, bool) {
	return func() (Action, bool) { return Action{Kind: Wait, Reason: r}, true }
}

// bootstrap orders all machines at once: the addresses of all members are known, so etcd forms
// without one member joining after the other.
func (w World) bootstrap() (Action, bool) {
	for slot := range w.Replicas {
		i := slices.IndexFunc(w.Machines, func(m Machine) bool { return m.Slot == slot })
		if i < 0 {
			return Action{Kind: Order, Slot: slot, At: slot}, true
		}
		if m := w.Machines[i]; m.Failed && !m.Deleting {
			return Action{Kind: Delete, Machine: m.Name}, true
		}
	}
	for _, m := range w.Machines {
		if m.Slot >= w.Replicas && !m.Deleting {
			return Action{Kind: Delete, Machine: m.Name}, true
		}
	}
	return Action{}, false
}

// assign gives each member its address, unless another member is there.
func (w World) assign() (Action, bool) {
	for _, m := range w.Machines {
		at := m.At
		if member, ok := w.memberOn(m); ok && member.At != Unknown {
			at = member.At
		} else if w.Initialized {
			continue
		}
		if m.Active && !m.Deleting && w.Holders[at] != m.Name {
			return Action{Kind: Assign, At: at, Machine: m.Name}, true
		}
	}
	return Action{}, false
}

// assignFree gives machines their addresses back without knowing the members: only addresses that
// no machine has.
func (w World) assignFree() (Action, bool) {
	for _, m := range w.Machines {
		if m.Active && !m.Deleting && w.Holders[m.At] == "" {
			return Action{Kind: Assign, At: m.At, Machine: m.Name}, true
		}
	}
	return Action{}, false
}

// foreign waits if someone has added a member: its purpose is unknown, and it counts for quorum.
func (w World) foreign() (Action, bool) {
	i := slices.IndexFunc(w.Members, func(m Member) bool { return m.At == Unknown })
	if i < 0 {
		return Action{}, false
	}
	return Action{Kind: Wait, Reason: Foreign, Member: w.Members[i].ID}, true
}
