// Package cluster reconciles Clusters: it reads the configs of a Cluster, builds the objects of
// Cluster API (package build), applies those that differ, deletes those that are no longer wanted,
// and reports the state in conditions.
//
//	Cluster, configs ──spec.Gather──▶ build.Objects ──apply──▶ objects of Cluster API in eksa-system
//	     ▲                                                        │ watches
//	     └───────────────── status.go ◀───────────────────────────┘
//
// It never calls a workload cluster, and never polls: watches trigger every reconcile. Only a new
// Cluster asks whether there are machines (package capacity), and waits until there are. Workers
// are applied together with their control plane, and Cluster API makes them wait for it; only a
// newer version waits here until the control plane has it, and both wait for add-ons (package
// lockstep). Start with Reconcile; all conditions are computed in status.go.
package cluster

import (
	"context"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/capacity"
	"github.com/drover-dev/drover/internal/controllers/clusters/measure"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/spec"
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
	// Record writes the pending records of a Cluster and sets the last audited change in its status.
	Record(ctx context.Context, c *anywherev1.Cluster) error
}

// Capacity decides whether there are machines for new Clusters.
type Capacity interface {
	// Admit returns why a new Cluster has to wait, or nil.
	Admit(ctx context.Context, config *spec.Config) (*capacity.Shortage, error)
}

// Figures records the durations of stages.
type Figures interface {
	Report(ctx context.Context, c *anywherev1.Cluster, ended ...measure.Stage)
}

// Controller reconciles Clusters.
type Controller struct {
	// Client reads from the cache of the manager. Live reads from the API server: what is not
	// cached, and before irreversible actions.
	Client client.Client
	Live   client.Reader
	// Secrets reads credentials and kubeconfigs, Metadata their labels and annotations.
	Secrets  Secrets
	Metadata client.Reader
	// Access caches the versions of the Roles and RoleBindings for creators. SetupWithManager sets
	// it.
	Access client.Reader
	// Version returns the Kubernetes version of a minor version.
	Version func(minor string) (string, error)
	// Charts is the location of the chart of the Pod network, and CNIVersion its version. Without
	// Charts, no network is installed.
	Charts, CNIVersion string
	// ManagementCluster is the name of this management plane, if it has no Cluster.
	ManagementCluster string
	// Capacity decides about new Clusters.
	Capacity Capacity
	// Records and Figures receive changes and durations.
	Records Records
	Figures Figures
	// Events receives events.
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// Indexed reports that the cache has the indexes of package index of add-ons.
	Indexed bool
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	access  grants
	journal measure.Journal
}

// Reconcile reconciles one Cluster.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	visit, err := c.opening().Open(ctx, request.NamespacedName, &anywherev1.Cluster{})
	if visit == nil || err != nil {
		return reconcile.Result(err, 0)
	}
	s := &scope{visit: visit, cluster: visit.Object}
	return c.close(ctx, s, reconcile.Run(ctx, s, c.steps(s)))
}

// steps returns the steps for a Cluster.
func (c *Controller) steps(s *scope) []reconcile.Step[*scope] {
	if s.visit.Deleting() {
		return []reconcile.Step[*scope]{
			{Doing: "recording changes", Run: c.record},
			{Doing: "observing objects", Run: c.observe},
			{Doing: "finding workload clusters", Run: c.hold},
			{Doing: "deleting the cluster", Run: c.deleteCluster},
			{Doing: "deleting the Pod network", Run: c.deleteNetwork},
			{Doing: "disabling packages", Run: c.withdrawPackages},
			{Doing: "deleting other objects", Run: c.deleteRest},
			{Doing: "revoking access", Run: c.deleteAccess},
			{Doing: "deleting configs", Run: c.deleteConfigs},
			{Doing: "removing the finalizer", Run: c.release},
		}
	}
	return []reconcile.Step[*scope]{
		{Doing: "recording changes", Run: c.record},
		{Doing: "observing objects", Run: c.observe},
		{Doing: "claiming the name", Run: c.claimName},
		{Doing: "gathering configs", Run: c.gather},
		{Doing: "finding the management cluster", Run: c.findManagement},
		{Doing: "reading credentials", Run: c.readCredentials},
		{Doing: "reserving machines", Run: c.reserve},
		{Doing: "keeping add-ons in step", Run: c.keepInStep},
		{Doing: "preparing encryption", Run: c.encrypt},
		{Doing: "building objects", Run: c.build},
		{Doing: "checking upgrades in place", Run: c.checkInPlace},
		{Doing: "applying objects", Run: c.apply},
		{Doing: "deleting unused objects", Run: c.prune},
		{Doing: "granting access", Run: c.grantAccess},
		{Doing: "enabling packages", Run: c.offerPackages},
	}
}

// day is the unit of the expiry of certificates.
const day = 24 * time.Hour
