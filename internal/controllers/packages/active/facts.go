package active

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/workload"
)

// facts are the input of decisions and of the status.
type facts struct {
	now  time.Time
	spec *packagesv1.PackageBundleControllerSpec
	// status is the status of the last reconcile.
	status *packagesv1.PackageBundleControllerStatus
	name   string
	// identity spreads the checks of many objects over time.
	identity string

	// ignored is set for objects in other namespaces.
	ignored  bool
	deleting time.Time
	// deletingFor is for how long this process has known of the deletion.
	deletingFor time.Duration
	// hasFinalizer is set if copies may be on the cluster.
	hasFinalizer bool
	abandoned    bool

	cluster client.ObjectKey
	// tenant is the namespace of the cluster's owner.
	tenant string
	// foreignNamespace is set if the namespace of packages was not created for the cluster, whose
	// credentials are then not for it.
	foreignNamespace bool

	connected *workload.Cluster
	// unreachable is why the cluster can't be reached, nil if it can.
	unreachable *problem
	// gone is set if the Cluster doesn't exist.
	gone bool
	// versionStale is set if the version must be queried.
	versionStale bool
	// version is the last known version, such as 1.36.
	version string

	// place identifies the newest bundle, and is empty if the version is unknown; access identifies
	// the credentials for it.
	place, access            string
	latestCheck, activeCheck check
	// activePlace identifies the active bundle.
	activePlace string

	// active and latest are nil if they don't exist.
	active, latest *packagesv1.PackageBundle
	// activeFault and latestFault are the reasons why they can't be used.
	activeFault, latestFault error
	// installed are the names of the packages on the cluster.
	installed []string

	credentials credentials
}

// problem is a reason and message for a condition.
type problem struct {
	reason, message string
	// after is when to retry, if no event triggers it.
	after time.Duration
}

// newer reports whether bundle a is newer than b. An invalid name is never newer.
func newer(a, b string) bool {
	x, err := bundle.ParseName(a)
	if err != nil {
		return false
	}
	y, err := bundle.ParseName(b)
	return err != nil || x.Compare(y) > 0
}

// interval is the time between checks for newer bundles.
func (f *facts) interval() time.Duration {
	if d := f.spec.UpgradeCheckInterval.Duration; d > 0 {
		return max(d, minInterval)
	}
	return defaultInterval
}

// retry is the time until a failed check is repeated. It is shorter until the first success.
func (f *facts) retry() time.Duration {
	d := f.spec.UpgradeCheckShortInterval.Duration
	if d <= 0 {
		d = defaultShortInterval
	}
	if f.status.LastCheck == nil {
		d = min(d, firstRetry)
	}
	return max(d, minInterval)
}

// ready reports whether the cluster is reachable and its version is known.
func (f *facts) ready() bool { return f.unreachable == nil && !f.versionStale && f.version != "" }
