package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// three returns a healthy etcd with three members, led by the first.
func three() World {
	w := World{Replicas: 3, Initialized: true, Quorum: true, Holders: map[int]string{0: "a", 1: "b", 2: "c"}, Reserved: []int{0, 1, 2}}
	for slot, name := range []string{"a", "b", "c"} {
		w.Members = append(w.Members, Member{ID: uint64(slot + 1), Name: name, At: slot, Healthy: true, Leader: slot == 0})
		w.Machines = append(w.Machines, Machine{Name: name, Slot: slot, At: slot, Active: true})
	}
	return w
}

func with(w World, changes ...func(*World)) World {
	for _, change := range changes {
		change(&w)
	}
	return w
}

func outdated(i int) func(*World) { return func(w *World) { w.Machines[i].Outdated = true } }

func down(i int) func(*World) { return func(w *World) { w.Members[i].Healthy = false } }

func overdue(i int) func(*World) { return func(w *World) { w.Machines[i].Overdue = true } }

// replacement adds a learner at the spare address and its machine for a slot.
func replacement(slot int) func(*World) {
	return func(w *World) {
		w.Members = append(w.Members, Member{ID: 9, Name: "n", At: Spare, Learner: true})
		w.Machines = append(w.Machines, Machine{Name: "n", Slot: slot, At: Spare, Active: true})
		w.Holders[Spare] = "n"
	}
}

func promoted(w *World) {
	last := &w.Members[len(w.Members)-1]
	last.Learner, last.Healthy = false, true
}

func without(i int) func(*World) {
	return func(w *World) { w.Members = append(w.Members[:i:i], w.Members[i+1:]...) }
}

func TestNext(t *testing.T) {
	for name, tt := range map[string]struct {
		world World
		want  Action
	}{
		"everything is as wanted": {three(), Action{Kind: Done}},
		"a new etcd gets a machine for each slot": {
			World{Replicas: 3, Machines: []Machine{{Name: "a", Slot: 0}}},
			Action{Kind: Order, Slot: 1, At: 1},
		},
		"a new machine gets its address": {
			World{Replicas: 1, Machines: []Machine{{Name: "a", Active: true}}}, Action{Kind: Assign, Machine: "a"},
		},
		"a new machine that failed is deleted": {
			World{Replicas: 1, Machines: []Machine{{Name: "a", Failed: true}}}, Action{Kind: Delete, Machine: "a"},
		},
		"a new etcd that has not formed": {
			World{Replicas: 1, Machines: []Machine{{Name: "a", Active: true}}, Holders: map[int]string{0: "a"}}, Action{Kind: Wait, Reason: Forming},
		},
		"an outdated member gets a replacement": {with(three(), outdated(1)), Action{Kind: AddLearner, At: Spare}},
		"the replacement gets a machine": {
			with(three(), outdated(1), func(w *World) { w.Members = append(w.Members, Member{ID: 9, At: Spare, Learner: true}) }),
			Action{Kind: Order, Slot: 1, At: Spare},
		},
		"a learner is not ready": {
			with(three(), outdated(1), replacement(1)), Action{Kind: Wait, Reason: Joining, Machine: "n"},
		},
		"a learner that never started is recognized by its address": {
			with(three(), outdated(1), replacement(1), func(w *World) { w.Members[3].Name = "" }), Action{Kind: Wait, Reason: Joining, Machine: "n"},
		},
		"a learner needs its address": {
			with(three(), outdated(1), replacement(1), func(w *World) { delete(w.Holders, Spare) }), Action{Kind: Assign, At: Spare, Machine: "n"},
		},
		"a learner that is ready is promoted": {
			with(three(), outdated(1), replacement(1), func(w *World) { w.Members[3].Healthy = true }), Action{Kind: Promote, Member: 9},
		},
		"a learner that takes too long is removed": {
			with(three(), outdated(1), replacement(1), overdue(3)), Action{Kind: Remove, Member: 9},
		},
		"the machine of a removed learner is deleted": {
			with(three(), outdated(1), replacement(1), without(3)), Action{Kind: Delete, Machine: "n"},
		},
		"the predecessor is removed": {with(three(), outdated(1), replacement(1), promoted), Action{Kind: Remove, Member: 2}},
		"a leader hands over to a current member": {
			with(three(), outdated(0), outdated(1), outdated(2), replacement(0), promoted), Action{Kind: MoveLeader, Member: 9},
		},
		"the machine of the predecessor is deleted": {
			with(three(), outdated(1), replacement(1), promoted, without(1)), Action{Kind: Delete, Machine: "b"},
		},
		"the address of the slot moves": {
			with(three(), replacement(1), promoted, without(1), func(w *World) { w.Machines[1].Deleting = true }),
			Action{Kind: Assign, At: 1, Machine: "n"},
		},
		"other members use the address of the slot": {
			with(three(), replacement(1), promoted, without(1), func(w *World) { w.Machines[1].Deleting = true; w.Holders[1] = "n" }),
			Action{Kind: UpdatePeer, At: 1, Member: 9},
		},
		"the spare address becomes free": {
			with(three(), func(w *World) { w.Holders[Spare] = "b" }), Action{Kind: Unassign, At: Spare},
		},
		"a member that is down for a moment stays":   {with(three(), down(1)), Action{Kind: Wait, Reason: Unhealthy}},
		"a member that is down for long is replaced": {with(three(), down(1), overdue(1)), Action{Kind: AddLearner, At: Spare}},
		"a member whose machine is gone is replaced": {
			with(three(), down(1), func(w *World) { w.Machines = append(w.Machines[:1:1], w.Machines[2]) }), Action{Kind: AddLearner, At: Spare},
		},
		"an outdated member waits for an unhealthy one": {with(three(), outdated(0), down(1)), Action{Kind: Wait, Reason: Unhealthy}},
		"without quorum nothing is removed": {
			with(three(), down(0), down(1), overdue(0), overdue(1), func(w *World) { w.Quorum = false }), Action{Kind: Wait, Reason: NoQuorum},
		},
		"without quorum a machine gets its address back": {
			with(three(), func(w *World) { w.Quorum = false; delete(w.Holders, 1) }), Action{Kind: Assign, At: 1, Machine: "b"},
		},
		"a removal that would cost quorum waits": {
			with(three(), outdated(1), replacement(1), promoted, down(0), down(2)), Action{Kind: Wait, Reason: Unhealthy},
		},
		"a replacement that breaks before it has the address of its slot is replaced there": {
			with(three(), replacement(1), promoted, without(1), down(2), overdue(3), func(w *World) {
				w.Machines = append(w.Machines[:1:1], w.Machines[2:]...)
				w.Machines[2].Active = false
			}), Action{Kind: AddLearner, At: 1},
		},
		"growth adds a member at the address of its slot": {
			with(three(), func(w *World) { w.Replicas = 5 }), Action{Kind: AddLearner, At: 3},
		},
		"shrinking removes the last slot first": {with(three(), func(w *World) { w.Replicas = 1 }), Action{Kind: Remove, Member: 3}},
		"the address of a slot that is no longer wanted is released": {
			with(three(), func(w *World) { w.Reserved = append(w.Reserved, 3) }), Action{Kind: Release, At: 3},
		},
		"a member that someone else has added stops changes": {
			with(three(), outdated(1), func(w *World) { w.Members = append(w.Members, Member{ID: 7, At: Unknown}) }),
			Action{Kind: Wait, Reason: Foreign, Member: 7},
		},
		"a replacement waits until the last machine is gone": {
			with(three(), outdated(1), func(w *World) { w.Machines = append(w.Machines, Machine{Name: "x", Slot: 0, Deleting: true}) }),
			Action{Kind: Wait, Reason: Deprovisioning},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Next(tt.world)); diff != "" {
				t.Errorf("action (-want +got):\n%s", diff)
			}
		})
	}
}
