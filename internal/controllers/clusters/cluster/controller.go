// Package cluster reconciles Clusters: it reads the configs of a Cluster, builds the objects of Cluster API (package build),
// applies those that differ, deletes those that are no longer wanted, and reports the state in conditions.
//
//	Cluster, configs ──spec.Gather──▶ build.Objects ──apply──▶ objects of Cluster API in eksa-system
//	     ▲                                                        │ watches
//	     └───────────────── status.go ◀───────────────────────────┘
//
// It never calls a workload cluster or a Packet API, and never polls: watches trigger every reconcile. Workers are applied
// together with their control plane, and Cluster API makes them wait for it; only a newer version waits here until the control
// plane has it. Start with Reconcile; all conditions are computed in status.go.
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

// FieldManager owns the fields that are applied.
const FieldManager = "drover-clusters"

// Secrets reads the data of Secrets.
type Secrets interface {
	// Data returns the data of a Secret, or a NotFound error.
	Data(ctx context.Context, kind string, key client.ObjectKey) (map[string][]byte, error)
}

// Records writes audit records.
type Records interface {
	// Record writes the pending records of a Cluster and sets the audited generation in its status.
	Record(ctx context.Context, c *anywherev1.Cluster) error
}

// Figures records the durations of stages.
type Figures interface {
	Report(ctx context.Context, c *anywherev1.Cluster, ended ...measure.Stage)
}

// Controller reconciles Clusters.
type Controller struct {
	// Client reads from the cache of the manager. Live reads from the API server: what is not cached, and before irreversible
	// actions.
	Client client.Client
	Live   client.Reader
	// Secrets reads credentials and kubeconfigs, Metadata their labels and annotations.
	Secrets  Secrets
	Metadata client.Reader
	// Access caches the versions of the Roles and RoleBindings for creators. SetupWithManager sets it.
	Access client.Reader
	// Version returns the Kubernetes version of a minor version.
	Version func(minor string) (string, error)
	// Charts is the location of the chart of the Pod network, and CNIVersion its version. Without Charts, no network is installed.
	Charts, CNIVersion string
	// ManagementCluster is the name of this management plane, if it has no Cluster.
	ManagementCluster string
	// Records and Figures receive changes and durations.
	Records Records
	Figures Figures
	// Events receives events.
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// WatchFilter limits the controller to objects with this value of the watch label; empty means all.
	WatchFilter string

	writes  fresh.Writes
	access  grants
	journal measure.Journal
}

// step is one part of a reconcile. It returns whether to continue with the next one.
type step struct {
	name string
	do   func(context.Context, *scope) (bool, error)
}

// Reconcile reconciles one Cluster.
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
		return retry(err)
	}
	if failed != nil {
		return retry(failed)
	}
	return ctrl.Result{RequeueAfter: s.after}, nil
}

// run runs the steps until one fails or has nothing left to do.
func (c *Controller) run(ctx context.Context, s *scope) error {
	for _, step := range c.steps(s) {
		further, err := step.do(ctx, s)
		if err != nil || !further {
			return err
		}
	}
	return nil
}

// retry maps an error to a result. A conflict is not an error, because the cache may lag behind a write.
func retry(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: fresh.Retry}, nil
	}
	return ctrl.Result{}, err
}

// steps returns the steps for a Cluster.
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
			{"release", c.release},
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

// day is the unit of the expiry of certificates.
const day = 24 * time.Hour
