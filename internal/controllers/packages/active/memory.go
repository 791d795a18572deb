package active

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/workload"
)

// knowledge is what is known about one cluster. It is lost when the process ends: the status
// contains what matters, and the rest is queried again.
type knowledge struct {
	// through is the connection of the last version query; nil if the version must be queried
	// again.
	through    *workload.Cluster
	version    string
	versionErr error
	// queriedAt is the time of the query.
	queriedAt time.Time

	latestCheck check
	// activeCheck is the check for the active bundle.
	activeCheck check

	copied copied
}

// check is the result of checking a registry for a bundle.
type check struct {
	// place identifies the bundle, and access the credentials.
	place, access string
	at            time.Time
	// name is the name of the bundle.
	name    string
	err     error
	refused bool
}

// memory holds knowledge by PackageBundleController.
type memory struct{ reconcile.Memory[knowledge] }

// lost records that a copy was deleted.
func (m *memory) lost(key client.ObjectKey, at secretKey) {
	m.UpdateKnown(key, func(k *knowledge) {
		k.copied.written = maps.Clone(k.copied.written) // reconciles may be reading it
		delete(k.copied.written, at)
	})
}

// waiting returns the objects whose checks found a bundle.
func (m *memory) waiting(bundle string) []client.ObjectKey {
	return m.Keys(func(k *knowledge) bool { return k.latestCheck.name == bundle || k.activeCheck.name == bundle })
}

// olderVersion reports whether a resource version is older than another.
func olderVersion(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}
