// Package cluster reconciles Clusters: it gathers what a Cluster names, has package build make the objects of Cluster API that it consists
// of, applies those that are not as they should be, removes those that are wanted no longer, and tells in conditions what became of it.
//
//	Cluster, configs ──spec.Gather──▶ build.Objects ──apply──▶ objects of Cluster API in eksa-system
//	     ▲                                                        │ watches
//	     └───────────────── status.go ◀───────────────────────────┘
//
// It makes no call to a workload cluster and none to the metal API, and asks nobody twice: everything is driven by watches. Workers are
// applied together with their control plane, which Cluster API lets them wait for; only a newer version waits here until the control plane
// has it. Start with Reconcile; conditions are made in status.go.
package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/measure"
	"github.com/drover-dev/drover/internal/controllers/fresh"
)

// FieldManager owns what is applied.
const FieldManager = "drover-clusters"

// Secrets reads the data of Secrets.
type Secrets interface {
	// Data is what is in a Secret. The error is NotFound if there is none.
	Data(ctx context.Context, kind string, key client.ObjectKey) (map[string][]byte, error)
}

// Records takes who asked for a Cluster to be as it is.
type Records interface {
	// Record writes what is noted on a Cluster, and how far that goes into its status.
	Record(ctx context.Context, c *anywherev1.Cluster) error
}

// Figures takes how long stages of operations took.
type Figures interface {
	Report(ctx context.Context, c *anywherev1.Cluster, ended ...measure.Stage)
}

// Controller reconciles Clusters.
type Controller struct {
	// Client reads from the manager's cache, Live from the API server, for what can't be undone and what is not cached.
	Client client.Client
	Live   client.Reader
	// Secrets reads credentials and kubeconfigs, Metadata what is said about them.
	Secrets  Secrets
	Metadata client.Reader
	// Access knows the versions of the Roles and RoleBindings that are made for people. SetupWithManager sets it.
	Access client.Reader
	// Version is the version of Kubernetes for a minor.
	Version func(minor string) (string, error)
	// Charts is where the chart of the network is, and CNIVersion its version. Without Charts clusters get no network.
	Charts, CNIVersion string
	// ManagementCluster is the name that this management plane goes by, if it has no Cluster of its own.
	ManagementCluster string
	// Records takes who asked for what, Figures how long it took.
	Records Records
	Figures Figures
	// Events receives what was done.
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string

	writes  fresh.Writes
	access  granted
	journal measure.Journal
}

// step is one part of a reconcile. It says whether there is anything left for the next ones to do.
type step struct {
	name string
	do   func(context.Context, *scope) (bool, error)
}

// Reconcile brings one Cluster closer to what it says.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := c.open(ctx, request.NamespacedName)
	if s == nil || err != nil {
		return ctrl.Result{}, err
	}
	if s.stale {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	failed := c.run(ctx, s)
	if err := c.close(ctx, s); err != nil {
		return again(err)
	}
	if failed != nil {
		return again(failed)
	}
	return ctrl.Result{RequeueAfter: s.after}, nil
}

// run takes the steps until one says that there is nothing left to do, or fails.
func (c *Controller) run(ctx context.Context, s *scope) error {
	for _, step := range c.steps(s) {
		further, err := step.do(ctx, s)
		if err != nil || !further {
			return err
		}
	}
	return nil
}

// again is for what went wrong. A conflict is no error: the cache did not know yet what was written, perhaps by this controller itself.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	return ctrl.Result{}, err
}

// steps is what there is to do for a Cluster.
func (c *Controller) steps(s *scope) []step {
	if s.deleting() {
		return []step{
			{"record", c.record},
			{"observe", c.observe},
			{"hold", c.hold},
			{"delete the cluster", c.deleteCluster},
			{"delete the network", c.deleteNetwork},
			{"withdraw packages", c.withdrawPackages},
			{"delete the rest", c.deleteRest},
			{"delete access", c.deleteAccess},
			{"delete configs", c.deleteConfigs},
			{"let go", c.letGo},
		}
	}
	return []step{
		{"take", c.take},
		{"record", c.record},
		{"observe", c.observe},
		{"gather", c.gather},
		{"find the management cluster", c.findManagement},
		{"read credentials", c.readCredentials},
		{"build", c.build},
		{"apply", c.apply},
		{"prune", c.prune},
		{"grant access", c.grantAccess},
		{"offer packages", c.offerPackages},
	}
}

// day is how often what counts days is looked at.
const day = 24 * time.Hour
