package active

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/workload"
)

// knowledge is what was found out about one cluster. It is lost with the process: what matters is in the status, and the rest is asked again.
type knowledge struct {
	// through is the connection that the version was asked through; nil if it must be asked again.
	through *workload.Cluster
	version string
	unheard error
	// heard is when it was asked.
	heard time.Time

	look look
	// fetch is a look for the active bundle.
	fetch look

	copied copied
}

// look is how a question to a registry ended.
type look struct {
	// place is what was asked for, and access with which credentials.
	place, access string
	at            time.Time
	// name is that of the bundle.
	name    string
	err     error
	refused bool
}

// memory holds knowledge by PackageBundleController.
type memory struct {
	mu    sync.Mutex
	known map[client.ObjectKey]*knowledge
}

func (m *memory) of(key client.ObjectKey) knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.known[key]; k != nil {
		return *k
	}
	return knowledge{}
}

func (m *memory) update(key client.ObjectKey, change func(*knowledge)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[client.ObjectKey]*knowledge{}
	}
	if m.known[key] == nil {
		m.known[key] = &knowledge{}
	}
	change(m.known[key])
}

// lost notes that a copy is gone.
func (m *memory) lost(key client.ObjectKey, at spot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.known[key]; k != nil {
		k.copied.written = maps.Clone(k.copied.written) // others may be reading it
		delete(k.copied.written, at)
	}
}

func (m *memory) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}

// waiting are those who have found out that a bundle is there, and may not have said so yet.
func (m *memory) waiting(bundle string) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []client.ObjectKey
	for key, k := range m.known {
		if k.look.name == bundle || k.fetch.name == bundle {
			out = append(out, key)
		}
	}
	return out
}

// behind says that a version is older than another.
func behind(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}
