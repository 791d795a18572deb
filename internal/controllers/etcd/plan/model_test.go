package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// model is an etcd and its machines that carries out actions, while faults happen.
type model struct {
	World

	random  *rand.Rand
	next    int
	dead    map[string]bool // machines whose data is lost
	history []string
}

func newModel(seed uint64) *model {
	return &model{
		World:  World{Replicas: 1 + 2*int(seed%3), Holders: map[int]string{}},
		random: rand.New(rand.NewPCG(seed, 1)), dead: map[string]bool{},
	}
}

// apply carries out an action, as etcd and the Packet API do.
func (m *model) apply(t testing.TB, a Action) {
	t.Helper()
	m.history = append(m.history, fmt.Sprintf("%+v", a))
	member := slices.IndexFunc(m.Members, func(x Member) bool { return x.ID == a.Member && x.ID != 0 })
	switch a.Kind {
	case Order:
		m.next++
		m.Machines = append(m.Machines, Machine{Name: fmt.Sprint("m", m.next), Slot: a.Slot, At: a.At})
	case Assign:
		m.Holders[a.At] = a.Machine
	case Unassign:
		delete(m.Holders, a.At)
	case Release:
		m.Reserved = slices.DeleteFunc(m.Reserved, func(slot int) bool { return slot == a.At })
		delete(m.Holders, a.At)
	case AddLearner:
		if slices.ContainsFunc(m.Members, func(x Member) bool { return x.At == a.At || x.Learner }) {
			t.Fatalf("etcd rejects a learner at %d", a.At)
		}
		m.next++
		m.Members = append(m.Members, Member{ID: uint64(m.next), At: a.At, Learner: true})
	case Promote:
		m.Members[member].Learner = false
	case MoveLeader:
		for i := range m.Members {
			m.Members[i].Leader = i == member
		}
	case Remove:
		m.Members = slices.Delete(m.Members, member, member+1)
	case UpdatePeer:
		m.Members[member].At = a.At
		for i := range m.Machines {
			if m.Machines[i].Name == m.Members[member].Name {
				m.Machines[i].At = a.At
			}
		}
	case Delete:
		for i := range m.Machines {
			if m.Machines[i].Name == a.Machine {
				m.Machines[i].Deleting = true
			}
		}
	}
}

// pass lets time pass: machines start and go, etcd forms, learners catch up, a leader is elected.
func (m *model) pass() {
	m.Machines = slices.DeleteFunc(m.Machines, func(x Machine) bool { return x.Deleting && m.random.IntN(3) == 0 })
	for i := range m.Machines {
		x := &m.Machines[i]
		x.Active = !x.Deleting && !m.dead[x.Name] && (x.Active || m.random.IntN(2) == 0)
	}
	if !m.Initialized {
		m.form()
	}
	for i := range m.Members {
		m.run(&m.Members[i])
	}
	m.elect()
	for slot := range m.Replicas {
		if !slices.Contains(m.Reserved, slot) {
			m.Reserved = append(m.Reserved, slot)
		}
	}
}

// form starts etcd once all machines have their addresses.
func (m *model) form() {
	for slot := range m.Replicas {
		i := slices.IndexFunc(m.Machines, func(x Machine) bool { return x.Slot == slot && x.Active && m.Holders[slot] == x.Name })
		if i < 0 {
			return
		}
	}
	m.Initialized = true
	for _, x := range m.Machines {
		m.next++
		m.Members = append(m.Members, Member{ID: uint64(m.next), Name: x.Name, At: x.Slot})
	}
}

// run decides whether a member is healthy: its machine runs and has its address.
func (m *model) run(x *Member) {
	machine, ok := m.machineOf(*x)
	reachable := ok && machine.Active && m.Holders[x.At] == machine.Name && !m.dead[machine.Name]
	if reachable {
		x.Name = machine.Name
	}
	x.Healthy = reachable
	for i := range m.Machines {
		if ok && m.Machines[i].Name == machine.Name {
			m.Machines[i].Overdue = !reachable && m.random.IntN(4) == 0
		}
	}
}

func (m *model) elect() {
	voters := m.voters()
	m.Quorum = m.Initialized && healthy(voters) >= quorum(len(voters))
	i := slices.IndexFunc(m.Members, func(x Member) bool { return x.Leader && x.Healthy && !x.Learner })
	for n := range m.Members {
		m.Members[n].Leader = n == i
	}
	if i >= 0 || !m.Quorum {
		return
	}
	for n := range m.Members {
		if m.Members[n].Healthy && !m.Members[n].Learner {
			m.Members[n].Leader = true
			return
		}
	}
}

// disturb lets something happen: a new spec, another size, a machine that is lost or deleted by
// someone. Losses never cost etcd its quorum, since there would be nothing left to decide.
func (m *model) disturb() {
	if !m.Initialized || len(m.Machines) == 0 {
		return
	}
	x := &m.Machines[m.random.IntN(len(m.Machines))]
	switch m.random.IntN(4) {
	case 0:
		for i := range m.Machines {
			m.Machines[i].Outdated = true
		}
	case 1:
		m.Replicas = 1 + 2*m.random.IntN(3)
	case 2:
		if m.survives(x.Name) {
			m.dead[x.Name] = true
		}
	case 3:
		if m.survives(x.Name) {
			x.Deleting = true
		}
	}
}

func (m *model) survives(name string) bool {
	voters := m.voters()
	for i := range voters {
		voters[i].Healthy = voters[i].Healthy && voters[i].Name != name
	}
	return healthy(voters) >= quorum(len(voters))
}

// check fails if an action breaks what must always hold.
func (m *model) check(t testing.TB, a Action) {
	t.Helper()
	voters := m.voters()
	if m.Initialized && healthy(voters) < quorum(len(voters)) && slices.Contains([]Kind{AddLearner, Promote, MoveLeader, Remove, UpdatePeer}, a.Kind) {
		t.Fatalf("%+v left etcd without quorum: %+v", a, m.World)
	}
	if learners := len(m.Members) - len(voters); learners > 1 {
		t.Fatalf("%+v made %d learners", a, learners)
	}
	if a.Kind == Order && len(m.Machines) > max(m.Replicas, len(voters))+1 {
		t.Fatalf("%+v made %d machines for %d members", a, len(m.Machines), m.Replicas)
	}
}

// simulate disturbs a model, then lets it settle.
func simulate(t testing.TB, seed uint64) {
	m := newModel(seed)
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: %q", seed, m.history[max(0, len(m.history)-20):])
		}
	}()
	for step := range 600 {
		if step > 20 && step < 200 && m.random.IntN(12) == 0 {
			m.disturb()
		}
		m.pass()
		a := Next(m.World)
		if a.Kind == Done && step > 250 {
			m.checkSettled(t)
			return
		}
		m.apply(t, a)
		m.check(t, a)
	}
	t.Fatalf("not settled: %+v", m.World)
}

func (m *model) checkSettled(t testing.TB) {
	t.Helper()
	if len(m.Members) != m.Replicas || len(m.Machines) != m.Replicas || len(m.Reserved) != m.Replicas {
		t.Errorf("settled with %d members, %d machines and %d addresses, want %d", len(m.Members), len(m.Machines), len(m.Reserved), m.Replicas)
	}
	for _, x := range m.Members {
		machine, ok := m.machineOf(x)
		if !ok || !x.Healthy || x.Learner || machine.Outdated || x.At != machine.Slot {
			t.Errorf("settled with member %+v on machine %+v", x, machine)
		}
	}
}

func TestNextAlwaysConverges(t *testing.T) {
	for seed := range uint64(2000) {
		simulate(t, seed)
		if t.Failed() {
			return
		}
	}
}

func FuzzNext(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { simulate(t, seed) })
}
