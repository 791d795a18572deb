// Package clusters makes, changes and removes clusters out of Clusters and their configs. It puts its parts together and holds no logic of
// its own: the map of it is the list in Setup.
package clusters

import (
	"fmt"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/controllers/clusters/admission"
	"github.com/drover-dev/drover/internal/controllers/clusters/cluster"
	"github.com/drover-dev/drover/internal/controllers/clusters/measure"
	"github.com/drover-dev/drover/internal/controllers/clusters/records"
	"github.com/drover-dev/drover/internal/model/addons/sources"
)

// keepRecords is how many records of who did what stay.
const keepRecords = 10000

// Options are what clusters need to know.
type Options struct {
	// Metadata watches the metadata of Secrets.
	Metadata ctrlcache.Cache
	// Charts is where the charts that ship with Drover are, as oci://host/path. Without it clusters get no network.
	Charts string
	// ManagementCluster is the name that this management plane goes by, if it has no Cluster of its own.
	ManagementCluster string
	// WatchFilter limits the controllers to objects with this value of the watch label; empty means all.
	WatchFilter string
	// Concurrency is the number of objects that are reconciled at a time.
	Concurrency int
}

// Setup adds the controller and the webhooks to mgr. What becomes of the objects that are made is up to Cluster API, the Packet provider and
// add-ons.
func Setup(mgr ctrl.Manager, o Options) error {
	network, err := charts.Version("cni")
	if err != nil {
		return err
	}
	recorder := &records.Recorder{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Keep: keepRecords}
	figures, err := measure.NewReporter(metrics.Registry, mgr.GetClient())
	if err != nil {
		return err
	}
	clusters := &cluster.Controller{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Secrets: sources.New(o.Metadata, mgr.GetAPIReader()), Metadata: o.Metadata,
		Version: version.ForMinor, Charts: o.Charts, CNIVersion: network, ManagementCluster: o.ManagementCluster,
		Events: mgr.GetEventRecorderFor("drover"), //nolint:staticcheck // Cluster API's reconcilers write events of the same kind
		Clock:  clock.RealClock{}, WatchFilter: o.WatchFilter, Records: recorder, Figures: figures,
	}
	for _, part := range []struct {
		name  string
		setup func() error
	}{
		{"Cluster", func() error {
			return clusters.SetupWithManager(mgr, o.Metadata, controller.Options{MaxConcurrentReconciles: o.Concurrency})
		}},
		{"webhooks", func() error {
			return admission.Setup(mgr, admission.Options{ManagementCluster: o.ManagementCluster, Version: version.ForMinor, Records: recorder})
		}},
	} {
		if err := part.setup(); err != nil {
			return fmt.Errorf("adding %s of clusters: %w", part.name, err)
		}
	}
	return nil
}
