// Package clusters assembles the controller and the webhooks of Clusters and their configs. It
// contains no logic of its own. Start with Setup.
package clusters

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/clusters/admission"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/controllers/clusters/measure"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/workload"
)

// keepRecords is the number of audit records to keep of each cluster, and keepNamespace of all
// clusters of a namespace.
const (
	keepRecords   = 1000
	keepNamespace = 10000
)

// Options configure the controller and the webhooks.
type Options struct {
	// Metadata caches the metadata of Secrets and namespaces.
	Metadata ctrlcache.Cache
	// Clusters are the connections to workload clusters.
	Clusters *workload.Clusters
	// Charts is the location of the charts of Drover, as oci://host/path. Without it, clusters get
	// no Pod network.
	Charts string
	// ManagementCluster is the name of this management plane, if it has no Cluster.
	ManagementCluster string
	// WatchFilter limits the controllers to objects with this value of the watch label; empty means
	// all.
	WatchFilter string
	// Metal is for credentials that don't name a Packet API.
	Metal access.Credentials
	// Concurrency is the number of concurrent reconciles.
	Concurrency int
}

// Setup adds the controller and the webhooks to mgr. Cluster API, the Packet provider and add-ons
// reconcile the objects that the controller creates.
func Setup(mgr ctrl.Manager, o Options) error {
	network, err := charts.Version("cni")
	if err != nil {
		return err
	}
	recorder := &records.Recorder{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Keep: keepRecords, KeepNamespace: keepNamespace}
	figures, err := measure.NewReporter(metrics.Registry, mgr.GetClient())
	if err != nil {
		return err
	}
	planner := newPlanner(mgr, o)
	clusters := &cluster.Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Secrets: sources.New(o.Metadata, mgr.GetAPIReader()), Metadata: o.Metadata,
		Version: version.ForMinor, Charts: o.Charts, CNIVersion: network, ManagementCluster: o.ManagementCluster,
		Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		Clock:  clock.RealClock{}, Indexed: true, WatchFilter: o.WatchFilter, Records: recorder, Figures: figures, Capacity: planner,
	}
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"Cluster", func() error {
			return clusters.SetupWithManager(mgr, o.Metadata, controller.Options{MaxConcurrentReconciles: o.Concurrency})
		}},
		{"audit records", func() error { return mgr.Add(recorder) }},
		{"encryption", func() error {
			return encryption.New(mgr, o.Clusters).SetupWithManager(mgr, o.Metadata, controller.Options{MaxConcurrentReconciles: o.Concurrency})
		}},
		{"webhooks", func() error {
			return admission.Setup(mgr, admission.Options{ManagementCluster: o.ManagementCluster, Version: version.ForMinor, Records: recorder, Capacity: planner, Quotas: newQuotas(mgr)})
		}},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("adding %s of clusters: %w", part.name, err)
		}
	}
	return nil
}

// newPlanner returns the planner of machines, with the credentials of the system namespace.
func newPlanner(mgr ctrl.Manager, o Options) *capacity.Planner {
	source := &access.Source{Secrets: contents.New(o.Metadata, mgr.GetAPIReader()), Default: o.Metal, UserAgent: "drover/" + version.Get().Version}
	return &capacity.Planner{
		Client: mgr.GetClient(), Clock: clock.RealClock{}, Quotas: newQuotas(mgr),
		API: func(ctx context.Context, credentials string) (capacity.API, error) {
			user := &infrav1.PacketCluster{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace}}
			user.Spec.CredentialsRef = &infrav1.CredentialsReference{Name: credentials}
			return source.For(ctx, user)
		},
	}
}

func newQuotas(mgr ctrl.Manager) *capacity.Quotas {
	return &capacity.Quotas{Live: mgr.GetAPIReader(), Configs: mgr.GetClient()}
}
