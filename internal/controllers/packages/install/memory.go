package install

import (
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// memory is what the controller knows of Packages besides what they say. It is lost with the process, and found again by reconciling, which
// happens to all of them when the process starts.
type memory struct {
	mu sync.Mutex
	// users are those who need a package, and needed what each of them needs.
	users  map[need]map[client.ObjectKey]bool
	needed map[client.ObjectKey][]need
	states map[client.ObjectKey]packagesv1.StateEnum
}

// need is a package of a cluster, in a namespace.
type need struct{ namespace, cluster, name string }

func needFor(namespace, cluster, name string) need {
	return need{namespace, cluster, strings.ToLower(name)}
}

// needs notes what a Package needs now.
func (m *memory) needs(who client.ObjectKey, cluster string, names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetNeeds(who)
	if m.users == nil {
		m.users, m.needed = map[need]map[client.ObjectKey]bool{}, map[client.ObjectKey][]need{}
	}
	for _, name := range names {
		n := needFor(who.Namespace, cluster, name)
		if m.users[n] == nil {
			m.users[n] = map[client.ObjectKey]bool{}
		}
		m.users[n][who] = true
		m.needed[who] = append(m.needed[who], n)
	}
}

// usersOf are those who need a package.
func (m *memory) usersOf(n need) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []client.ObjectKey
	for who := range m.users[n] {
		out = append(out, who)
	}
	return out
}

func (m *memory) forgetNeeds(who client.ObjectKey) {
	for _, n := range m.needed[who] {
		delete(m.users[n], who)
		if len(m.users[n]) == 0 {
			delete(m.users, n)
		}
	}
	delete(m.needed, who)
}

// state notes how far a Package has come.
func (m *memory) state(who client.ObjectKey, s packagesv1.StateEnum) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.states == nil {
		m.states = map[client.ObjectKey]packagesv1.StateEnum{}
	}
	m.states[who] = s
}

// counts says how many Packages are in each state.
func (m *memory) counts() map[packagesv1.StateEnum]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[packagesv1.StateEnum]int{}
	for _, s := range m.states {
		out[s]++
	}
	return out
}

func (m *memory) forget(who client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetNeeds(who)
	delete(m.states, who)
}
