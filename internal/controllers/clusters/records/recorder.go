// Package records writes AuditRecords: the pending records of Clusters (internal/model/audit) and
// deletions. It never decides what to record. Requests only write; Recorder.Start deletes what
// exceeds the limits in the background. Start with Recorder.
package records

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
)

// Recorder writes AuditRecords.
type Recorder struct {
	// Client writes records.
	Client client.Client
	// Live reads from the API server, because records are not cached.
	Live client.Reader
	// Keep is how many of the newest records are kept of each cluster, and KeepNamespace of all
	// clusters of a namespace; zero means all.
	Keep, KeepNamespace int

	mu sync.Mutex
	// due are the namespaces with new records.
	due map[string]bool
}

// Record writes the pending records of a Cluster and sets the last audited change in its status,
// which the caller writes. It is idempotent, because names of records are deterministic.
func (r *Recorder) Record(ctx context.Context, c *anywherev1.Cluster) error {
	pending := audit.Pending(c)
	for _, one := range pending {
		if err := r.write(ctx, one); err != nil {
			return err
		}
		c.Status.AuditedGeneration = max(c.Status.AuditedGeneration, one.Spec.Generation)
		c.Status.AuditedSequence = max(c.Status.AuditedSequence, one.Spec.Sequence)
	}
	return nil
}

// RecordDeletion records the deletion of a Cluster.
func (r *Recorder) RecordDeletion(ctx context.Context, c *anywherev1.Cluster, who authenticationv1.UserInfo, now time.Time) error {
	return r.write(ctx, audit.Deletion(c, who, now))
}

// RecordObject records the change of a config that a Cluster references.
func (r *Recorder) RecordObject(ctx context.Context, change *droverv1.AuditRecord) error {
	return r.write(ctx, change)
}

// write writes a record, which may be one too many.
func (r *Recorder) write(ctx context.Context, one *droverv1.AuditRecord) error {
	if err := r.create(ctx, one); err != nil {
		return err
	}
	r.mark(one.Spec.Cluster.Namespace)
	return nil
}

func (r *Recorder) create(ctx context.Context, one *droverv1.AuditRecord) error {
	if err := r.Client.Create(ctx, one); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing an audit record of cluster %q: %w", one.Spec.Cluster.Name, err)
	}
	return nil
}
