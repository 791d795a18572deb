// Package backup makes the scheduled backups of a management cluster. It acts on one object, Secret
// drover-backup, which says when, where and for whom; without it, or on an embedded plane, whose
// supervisor makes them, it does nothing.
//
//	Secret ──▶ due? ──▶ collect ──▶ sign, encrypt ──▶ storage ──▶ ConfigMap, metrics, events
//	             └──────────── again when the next one is due ◀────────────┘
//
// Only the leader makes backups. It reads every object of the fleet for that, and writes none but
// the status. What it writes to the storage can be opened with keys that the cluster doesn't have.
// Start with Controller.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/backup/archive"
	"github.com/drover-dev/drover/internal/backup/objects"
	"github.com/drover-dev/drover/internal/backup/schedule"
	"github.com/drover-dev/drover/internal/backup/settings"
	"github.com/drover-dev/drover/internal/backup/storage"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

// Reasons of events on the management cluster.
const (
	reasonFailed    = "BackupFailed"
	reasonRecovered = "BackupSucceeded"
)

// Controller makes backups.
type Controller struct {
	// Client writes the status, and Live reads from the API server: a backup of a cache that lags
	// would lack objects.
	Client client.Client
	Live   client.Reader
	Events record.EventRecorder
	Clock  clock.PassiveClock
	// Figures are the metrics.
	Figures *Figures
}

// Reconcile makes a backup if one is due.
func (c *Controller) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := c.Live.Get(ctx, key(), secret); err != nil {
		c.Figures.off()
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	manager, err := c.manager(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	set, err := settings.Parse(secret.Data)
	switch {
	case err == nil && set.Off():
		c.Figures.off()
		return ctrl.Result{}, nil
	case manager == nil:
		err = errors.New("this management plane has no Cluster that manages itself, which a backup belongs to")
	case err == nil && set.Location == "":
		err = errors.New("backups have no location: set one with `drover backup schedule --to`")
	}
	if err != nil {
		return c.finish(ctx, manager, outcome{status: schedule.Status{Failure: err.Error()}, every: set.Every})
	}
	return c.finish(ctx, manager, c.run(ctx, manager, set))
}

// outcome is what became of one run.
type outcome struct {
	status schedule.Status
	every  time.Duration
	next   time.Time
}

func (c *Controller) run(ctx context.Context, manager *anywherev1.Cluster, s settings.Settings) outcome {
	store, err := c.open(ctx, s, manager.Name)
	if err != nil {
		return outcome{schedule.Status{Failure: err.Error()}, s.Every, c.Clock.Now().Add(time.Minute)}
	}
	job := schedule.Job{Schedule: s.Schedule, Storage: store, Fill: func(ctx context.Context, at time.Time, w io.Writer) error {
		return c.write(ctx, request{manager, s, at}, w)
	}}
	status, next, err := job.Run(ctx, c.Clock.Now())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to make a backup")
	}
	return outcome{status, s.Every, next}
}

// request is a backup to make.
type request struct {
	manager *anywherev1.Cluster
	settings.Settings
	at time.Time
}

// content is a backup in memory, whose size is known before it is written.
type content []byte

// WriteTo implements archive.Content.
func (b content) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// write collects the objects and writes them, signed with the key of the cluster's CA.
func (c *Controller) write(ctx context.Context, r request, w io.Writer) error {
	recipients, err := r.AgeRecipients()
	if err != nil {
		return err
	}
	key, _, err := etcd.Authority(ctx, etcd.Cluster{ObjectKey: client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: r.manager.Name}, Objects: c.Live})
	if err != nil {
		return err
	}
	if key == nil {
		return errors.New("the management cluster doesn't have the key of its CA, which signs backups")
	}
	set, err := objects.Collect(ctx, c.Live)
	if err != nil {
		return err
	}
	data, err := set.Encode()
	if err != nil {
		return err
	}
	m := archive.Manifest{
		Namespace: r.manager.Namespace, Cluster: r.manager.Name, UID: string(r.manager.UID), Created: r.at.UTC().Truncate(time.Second),
		Size: int64(len(data)), Drover: version.Get().Version,
	}
	return archive.Objects().Write(w, m, content(data), archive.Seal{Key: key, Recipients: recipients})
}

// manager returns the management cluster that this is; nil if there is none.
func (c *Controller) manager(ctx context.Context) (*anywherev1.Cluster, error) {
	all := &anywherev1.ClusterList{}
	if err := c.Client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("finding the management cluster: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].IsSelfManaged() {
			return &all.Items[i], nil
		}
	}
	return nil, nil //nolint:nilnil // An embedded plane has none.
}

// finish publishes what became of a run.
func (c *Controller) finish(ctx context.Context, manager *anywherev1.Cluster, o outcome) (ctrl.Result, error) {
	c.Figures.observe(o)
	before, err := c.publish(ctx, settings.StatusData(o.status))
	if err != nil {
		return ctrl.Result{}, err
	}
	if manager != nil {
		c.report(manager, before.Failure, o.status.Failure)
	}
	if o.next.IsZero() {
		return ctrl.Result{}, nil // Only a change of the settings helps.
	}
	return ctrl.Result{RequeueAfter: max(o.next.Sub(c.Clock.Now()), time.Second)}, nil
}

// report writes an event when backups begin to fail, or to succeed again.
func (c *Controller) report(manager *anywherev1.Cluster, before, now string) {
	switch {
	case now != "" && now != before:
		c.Events.Eventf(manager, corev1.EventTypeWarning, reasonFailed, "Failed to make a backup: %s", now)
	case now == "" && before != "":
		c.Events.Event(manager, corev1.EventTypeNormal, reasonRecovered, "Made a backup again")
	}
}

// publish writes the status if it changed, and returns the previous one.
func (c *Controller) publish(ctx context.Context, data map[string]string) (schedule.Status, error) {
	there := &corev1.ConfigMap{}
	where := client.ObjectKey{Namespace: config.Namespace, Name: config.BackupStatus}
	err := c.Live.Get(ctx, where, there)
	before := settings.ParseStatus(there.Data)
	switch {
	case err == nil && maps.Equal(there.Data, data):
		return before, nil
	case err == nil:
		there.Data = data
		err = c.Client.Update(ctx, there)
	case client.IgnoreNotFound(err) == nil:
		err = c.Client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: where.Namespace, Name: where.Name, Labels: map[string]string{config.LabelPartOf: config.PartOf}},
			Data:       data,
		})
	}
	if err != nil {
		return before, fmt.Errorf("writing ConfigMap %q: %w", where, err)
	}
	return before, nil
}

func key() client.ObjectKey {
	return client.ObjectKey{Namespace: config.Namespace, Name: config.BackupSecret}
}

// open opens the storage of a management cluster.
func (c *Controller) open(ctx context.Context, s settings.Settings, manager string) (storage.Storage, error) {
	if s.Location != settings.Metal {
		access, err := registryAccess(s)
		if err != nil {
			return nil, err
		}
		return storage.Open(s.Location, storage.Cluster{Namespace: storage.Management, Name: manager}, storage.Access{Registry: access})
	}
	return c.openMetal(ctx, manager)
}
