package install

import (
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// memory holds what the controller knows about Packages besides their content. It is rebuilt by the
// reconciles after a restart.
type memory struct {
	mu sync.Mutex
	// users are the dependents of a package, and needed the dependencies of a dependent.
	users  map[need]map[client.ObjectKey]bool
	needed map[client.ObjectKey][]need
	states map[client.ObjectKey]packagesv1.StateEnum
	// deletions are when Packages were deleted.
	deletions reconcile.Ages
}

// need is a package of a cluster, in a namespace.
type need struct{ namespace, cluster, name string }

func needFor(namespace, cluster, name string) need {
	return need{namespace, cluster, strings.ToLower(name)}
}

// needs records the dependencies of a Package.
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

// usersOf returns the dependents of a package.
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

// state records the state of a Package.
func (m *memory) state(who client.ObjectKey, s packagesv1.StateEnum) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.states == nil {
		m.states = map[client.ObjectKey]packagesv1.StateEnum{}
	}
	m.states[who] = s
}

// counts returns the number of Packages in each state.
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
	m.deletions.Forget(who)
}
