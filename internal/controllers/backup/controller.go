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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/objects"
	"github.com/drover-dev/drover/internal/model/backup/schedule"
	"github.com/drover-dev/drover/internal/model/backup/settings"
	"github.com/drover-dev/drover/internal/model/backup/storage"
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
	// Registry is the address of the manager's registry, which add-ons and packages refer to.
	Registry string
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
	published, err := c.published(ctx)
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
		return c.finish(ctx, manager, published, outcome{status: schedule.Status{Failure: err.Error()}, every: set.Every})
	}
	isFirst := settings.ParseStatus(published.Data).Last.Name == ""
	return c.finish(ctx, manager, published, c.run(ctx, request{manager, set, isFirst}))
}

// outcome is what became of one run.
type outcome struct {
	status schedule.Status
	every  time.Duration
	next   time.Time
}

// request is a backup to make.
type request struct {
	manager *anywherev1.Cluster
	settings.Settings
	// isFirst means that this cluster has made none yet. Those in the storage are of a cluster of the
	// same name, which it may have been recovered from.
	isFirst bool
}

func (c *Controller) run(ctx context.Context, r request) outcome {
	store, err := c.open(ctx, r.Settings, r.manager.Name)
	if err != nil {
		return outcome{schedule.Status{Failure: err.Error()}, r.Every, c.Clock.Now().Add(time.Minute)}
	}
	job := schedule.Job{Schedule: r.Schedule, Now: r.isFirst, Storage: store, Fill: func(ctx context.Context, at time.Time, w io.Writer) error {
		return c.write(ctx, r, at, w)
	}}
	status, next, err := job.Run(ctx, c.Clock.Now())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to make a backup")
	}
	if err != nil && r.isFirst {
		status.Last = storage.Entry{} // It stays the first one.
	}
	return outcome{status, r.Every, next}
}

// content is a backup in memory, whose size is known before it is written.
type content []byte

// WriteTo implements archive.Content.
func (b content) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// write collects the objects and writes them, signed with the key of the cluster's CA.
func (c *Controller) write(ctx context.Context, r request, at time.Time, w io.Writer) error {
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
		Namespace: r.manager.Namespace, Cluster: r.manager.Name, UID: string(r.manager.UID), Created: at.UTC().Truncate(time.Second),
		Size: int64(len(data)), Drover: version.Get().Version, Registry: c.Registry,
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
	return nil, nil // An embedded plane has none.
}

// finish publishes what became of a run.
func (c *Controller) finish(ctx context.Context, manager *anywherev1.Cluster, published *corev1.ConfigMap, o outcome) (ctrl.Result, error) {
	before := settings.ParseStatus(published.Data)
	if o.status.Failure != "" && o.status.Last.Name == "" {
		o.status.Last, o.status.Kept = before.Last, before.Kept // The storage couldn't be asked.
	}
	c.Figures.observe(o)
	if err := c.publish(ctx, published, settings.StatusData(o.status)); err != nil {
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

// published returns the status of the run before, in a ConfigMap that may not exist yet.
func (c *Controller) published(ctx context.Context) (*corev1.ConfigMap, error) {
	there := &corev1.ConfigMap{}
	where := client.ObjectKey{Namespace: config.Namespace, Name: config.BackupStatus}
	err := c.Live.Get(ctx, where, there)
	if apierrors.IsNotFound(err) {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: where.Namespace, Name: where.Name, Labels: map[string]string{config.LabelPartOf: config.PartOf},
		}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %q: %w", where, err)
	}
	return there, nil
}

// publish writes the status if it changed.
func (c *Controller) publish(ctx context.Context, to *corev1.ConfigMap, data map[string]string) error {
	if maps.Equal(to.Data, data) {
		return nil
	}
	to.Data = data
	write := func() error { return c.Client.Update(ctx, to) }
	if to.ResourceVersion == "" {
		write = func() error { return c.Client.Create(ctx, to) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("writing ConfigMap %q: %w", client.ObjectKeyFromObject(to), err)
	}
	return nil
}

func key() client.ObjectKey {
	return client.ObjectKey{Namespace: config.Namespace, Name: config.BackupSecret}
}

// open opens the storage of a management cluster.
func (c *Controller) open(ctx context.Context, s settings.Settings, manager string) (storage.Storage, error) {
	if s.Location != settings.Metal {
		access, err := storage.SendingAccess(s.Location, s.Username, s.Password, []byte(s.CA))
		if err != nil {
			return nil, err
		}
		return storage.Open(s.Location, storage.Cluster{Namespace: storage.Management, Name: manager}, storage.Access{Registry: access})
	}
	return c.openMetal(ctx, manager)
}
