// Package schedule reconciles EtcdSnapshotSchedules: it saves snapshots of the etcd of clusters
// when they are due, and deletes old ones.
//
//	settings ──▶ take the outcome ──▶ decide ──▶ start ──▶ status.go
//	                   ▲                           │
//	                   └──── runs next to the workers
//
// A snapshot that fails is tried again, less and less often, but not after the next one is due.
// Snapshots that were missed while no manager ran become one. The package encrypts for public keys
// and can't decrypt anything. Packages workload/etcd/backup and storage do the work. Start with
// Reconcile; decide.go is pure, and status.go computes the condition.
package schedule

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/workload/etcd"
	"github.com/drover-dev/drover/internal/workload/etcd/backup"
)

const (
	// runTimeout bounds one snapshot.
	runTimeout = 30 * time.Minute
	// checkInterval is when to look again without an event: while a snapshot is saved, or for what is
	// not watched.
	checkInterval = 2 * time.Minute
)

// Controller reconciles EtcdSnapshotSchedules.
type Controller struct {
	// Client reads from the cache of the manager, Live from the API server: Secrets are not cached.
	Client client.Client
	Live   client.Reader
	// API returns the configuration for the API server of a cluster.
	API func(ctx context.Context, cluster client.ObjectKey) (*rest.Config, error)
	// Save saves a snapshot.
	Save   func(ctx context.Context, o backup.Options) (backup.Saved, error)
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// Temporary is the directory for archives until they are sent; the system's if empty.
	Temporary string
	// WatchFilter limits the controller to objects with this value of the watch label; empty means
	// all.
	WatchFilter string

	operations *operation.Runner
	ended      chan event.GenericEvent
}

type step = reconcile.Step[*scope]

// Reconcile reconciles one schedule.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	opening := reconcile.Opening[*droverv1.EtcdSnapshotSchedule]{Client: c.Client, Forget: c.forget}
	visit, err := opening.Open(ctx, request.NamespacedName, &droverv1.EtcdSnapshotSchedule{})
	if visit == nil || err != nil || visit.Deleting() {
		return reconcile.Result(err, 0)
	}
	s := &scope{visit: visit, schedule: visit.Object}
	err = reconcile.Run(ctx, s, []step{
		{Doing: "reading the outcome", Run: c.takeOutcome},
		{Doing: "reading the schedule", Run: c.readSchedule},
		{Doing: "finding the cluster", Run: c.findCluster},
		{Doing: "opening the storage", Run: c.openStorage},
		{Doing: "starting a snapshot", Run: c.start},
	})
	return c.close(ctx, s, err)
}

// forget cancels the snapshot of a schedule that is gone.
func (c *Controller) forget(key client.ObjectKey) {
	c.operations.Cancel(key)
	c.operations.Take(key)
}

// takeOutcome records what became of the last snapshot.
func (c *Controller) takeOutcome(_ context.Context, s *scope) error {
	outcome, ok := c.operations.Take(s.visit.Key())
	if !ok {
		subject, _ := c.operations.Running(s.visit.Key())
		s.running = subject != ""
		return nil
	}
	s.outcome = &outcome
	if saved, ok := outcome.Value.(result); ok {
		s.record(saved)
		c.Events.Eventf(s.schedule, corev1.EventTypeNormal, "SnapshotSaved", "Saved %s", saved.Location)
		s.pruneProblem = saved.pruneProblem
		return nil
	}
	s.schedule.Status.Failures++
	return nil
}

// start starts a snapshot if one is due.
func (c *Controller) start(_ context.Context, s *scope) error {
	status := &s.schedule.Status
	now := c.Clock.Now()
	s.due = s.next()
	if s.running || s.due.After(now) {
		return nil
	}
	cluster := etcd.Cluster{ObjectKey: s.clusterKey(), Objects: c.Live, API: func(ctx context.Context) (*rest.Config, error) {
		return c.API(ctx, s.clusterKey())
	}}
	work := run{
		options: backup.Options{Cluster: cluster, Storage: limited{s.storage, maxArchive}, Recipients: s.recipients, Now: now},
		keep:    s.keep(), save: c.Save,
	}
	if c.operations.Start(operation.Work{For: s.visit.Key(), Cluster: s.clusterKey(), Subject: "snapshot", Do: work.do}) {
		s.running = true
		status.LastAttemptTime = timeAt(now)
	}
	return nil
}

// close writes the status, and reconciles again when the next snapshot is due.
func (c *Controller) close(ctx context.Context, s *scope, outcome error) (ctrl.Result, error) {
	if outcome != nil && reconcile.AsWait(outcome) == nil && reconcile.AsTerminal(outcome) == nil {
		return s.visit.Close(ctx, outcome, 0)
	}
	before := s.ready()
	s.report(outcome, c.Clock.Now())
	if problem := s.problemEvent(before); problem != "" {
		c.Events.Event(s.schedule, corev1.EventTypeWarning, "SnapshotFailed", problem)
	}
	next := checkInterval
	if wait := s.due.Sub(c.Clock.Now()); !s.running && !s.due.IsZero() {
		next = max(wait, time.Second)
	}
	if reconcile.AsTerminal(outcome) != nil || s.schedule.Spec.Suspend {
		next = 0
	}
	return s.visit.Close(ctx, outcome, next)
}
