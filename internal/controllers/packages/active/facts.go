package active

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/workload"
)

// facts are what a reconcile found out, and all that its choice depends on.
type facts struct {
	now  time.Time
	spec *packagesv1.PackageBundleControllerSpec
	// status is that of the last reconcile.
	status *packagesv1.PackageBundleControllerStatus
	name   string
	// identity spreads questions of many objects over time.
	identity string

	// elsewhere says that the object is where nobody looks at it.
	elsewhere bool
	deleting  time.Time
	// held says that the object has a finalizer, so that something of it may be on the cluster.
	held      bool
	abandoned bool

	cluster   client.ObjectKey
	connected *workload.Cluster
	// unreachable is why there is no connection, or why the cluster did not answer; nil if it did.
	unreachable *problem
	// gone says that the Cluster is not there.
	gone bool
	// unasked says that it is not known which version the cluster has now.
	unasked bool
	// version is the last that was heard, such as 1.36.
	version string

	// place is what the newest bundle is looked for under, empty if the version is not known, and access how it is opened.
	place, access string
	look, fetch   look
	// activePlace is the same for the active bundle.
	activePlace string

	// active and latest are nil if they are not here.
	active, latest *packagesv1.PackageBundle
	// activeFault and latestFault are why they can't be used.
	activeFault, latestFault error
	// installed are the packages on the cluster, by the names that bundles have for them.
	installed []string

	credentials credentials
}

// problem is why something is not as it should be.
type problem struct {
	reason, message string
	// after is when that may have changed, if nothing will tell.
	after time.Duration
}

// newer says that one bundle comes after another. What has no proper name never does.
func newer(a, b string) bool {
	x, err := bundle.ParseName(a)
	if err != nil {
		return false
	}
	y, err := bundle.ParseName(b)
	return err != nil || x.Compare(y) > 0
}

// interval is how often newer bundles are looked for.
func (f *facts) interval() time.Duration {
	if d := f.spec.UpgradeCheckInterval.Duration; d > 0 {
		return max(d, minInterval)
	}
	return defaultInterval
}

// retry is how soon that is tried again. What never worked is tried sooner, since somebody waits for it.
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

// ready says that the cluster answered lately and told its version.
func (f *facts) ready() bool { return f.unreachable == nil && !f.unasked && f.version != "" }
