package schedule

import (
	"context"
	"fmt"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/model/backup/storage"
)

// scope is the state of one reconcile.
type scope struct {
	visit *reconcile.Visit[*droverv1.EtcdSnapshotSchedule]
	// schedule is the object of the visit.
	schedule *droverv1.EtcdSnapshotSchedule

	spec       cron.Schedule
	recipients []age.Recipient
	storage    storage.Storage

	// outcome is that of a snapshot which has ended since the last reconcile.
	outcome *operation.Outcome
	// pruneProblem is why old snapshots could not be deleted, or "".
	pruneProblem string
	// running means that a snapshot is being saved.
	running bool
	// due is when the next one is.
	due time.Time
}

func (s *scope) clusterKey() client.ObjectKey {
	return client.ObjectKey{Namespace: s.schedule.Namespace, Name: s.schedule.Spec.ClusterName}
}

func (s *scope) keep() int { return int(ptr.Deref(s.schedule.Spec.Keep, 0)) }

// next returns when the next snapshot is due.
func (s *scope) next() time.Time {
	status := s.schedule.Status
	h := history{created: s.schedule.CreationTimestamp.Time, attempt: timeOf(status.LastAttemptTime), failures: int(status.Failures)}
	if last := status.LastSnapshot; last != nil {
		h.saved = last.Time.Time
	}
	return decide(s.spec, h)
}

func notUsable(format string, args ...any) error {
	return &reconcile.Wait{Reason: droverv1.SnapshotSecretReason, Message: fmt.Sprintf(format, args...), After: checkInterval}
}

// readSchedule reads what the spec says.
func (c *Controller) readSchedule(_ context.Context, s *scope) error {
	if s.schedule.Spec.Suspend {
		return &reconcile.Terminal{Reason: droverv1.SnapshotSuspendedReason, Message: "The schedule is suspended"}
	}
	var err error
	if s.spec, s.recipients, err = read(s.schedule); err != nil {
		return &reconcile.Terminal{Reason: droverv1.SnapshotInvalidReason, Message: "Invalid " + err.Error()}
	}
	return nil
}

// findCluster checks that there is a cluster to save.
func (c *Controller) findCluster(ctx context.Context, s *scope) error {
	cluster := &clusterv1.Cluster{}
	err := c.Client.Get(ctx, s.clusterKey(), cluster)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || !cluster.DeletionTimestamp.IsZero() {
		return &reconcile.Wait{
			Reason:  droverv1.SnapshotClusterMissingReason,
			Message: fmt.Sprintf("Cluster %q not found in namespace %q; delete the schedule if the cluster is gone", s.schedule.Spec.ClusterName, s.schedule.Namespace),
		}
	}
	return nil
}

// openStorage opens the location with the credentials in the Secret.
func (c *Controller) openStorage(ctx context.Context, s *scope) error {
	location := s.schedule.Spec.Location
	data, err := c.credentials(ctx, s)
	if err != nil {
		return err
	}
	access, err := accessTo(location, data)
	if err != nil {
		return notUsable("Secret %q can't be used: %s", s.schedule.Spec.SecretRef.Name, err)
	}
	access.Temporary = c.Temporary
	s.storage, err = storage.Open(location, storage.Cluster{Namespace: s.schedule.Namespace, Name: s.schedule.Spec.ClusterName}, access)
	if err != nil {
		return notUsable("Secret %q can't be used: %s", s.schedule.Spec.SecretRef.Name, err)
	}
	return nil
}

func (c *Controller) credentials(ctx context.Context, s *scope) (map[string][]byte, error) {
	ref := s.schedule.Spec.SecretRef
	if ref == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: s.schedule.Namespace, Name: ref.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, notUsable("Secret %q not found in namespace %q", ref.Name, s.schedule.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", ref.Name, err)
	}
	return secret.Data, nil
}

// accessTo returns how to reach a storage with the content of a Secret. The manager never uses
// credentials of its own host.
func accessTo(location string, data map[string][]byte) (storage.Access, error) {
	out := storage.Access{S3: storage.NewS3Access(func(name string) string { return string(data[name]) })}
	out.S3.CA = data["ca.crt"]
	if !strings.HasPrefix(location, "oci://") {
		return out, nil
	}
	var err error
	out.Registry, err = storage.SendingAccess(location, string(data["username"]), string(data["password"]), data["ca.crt"])
	return out, err
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

func timeAt(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t.UTC().Truncate(time.Second))) }
