// Package records writes AuditRecords: the pending records of Clusters (internal/model/audit) and
// deletions. It never decides what to record. Start with Recorder.
package records

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// Keep is about how many of the newest records are kept; zero means all.
	Keep int

	written atomic.Int64
}

// Record writes the pending records of a Cluster and sets the audited generation in its status,
// which the caller writes. It is idempotent, because names of records are deterministic.
func (r *Recorder) Record(ctx context.Context, c *anywherev1.Cluster) error {
	pending := audit.Pending(c)
	for _, one := range pending {
		if err := r.create(ctx, one); err != nil {
			return err
		}
		c.Status.AuditedGeneration = one.Spec.Generation
	}
	if len(pending) == 0 {
		return nil
	}
	return r.prune(ctx)
}

// RecordDeletion records the deletion of a Cluster.
func (r *Recorder) RecordDeletion(ctx context.Context, c *anywherev1.Cluster, who authenticationv1.UserInfo, now time.Time) error {
	return r.create(ctx, audit.Deletion(c, who, now))
}

func (r *Recorder) create(ctx context.Context, one *droverv1.AuditRecord) error {
	if err := r.Client.Create(ctx, one); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("writing an audit record of cluster %q: %w", one.Spec.Cluster.Name, err)
	}
	return nil
}

// prune deletes the oldest records if there are too many. Because it has to list all records, it
// runs with the first record and then after every tenth of Keep.
func (r *Recorder) prune(ctx context.Context) error {
	if r.Keep <= 0 || (r.written.Add(1)-1)%int64(r.Keep/10+1) != 0 {
		return nil
	}
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(droverv1.GroupVersion.WithKind("AuditRecordList"))
	if err := r.Live.List(ctx, all); err != nil {
		return fmt.Errorf("listing audit records: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b metav1.PartialObjectMetadata) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for i := range max(0, len(all.Items)-r.Keep) {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &all.Items[i])); err != nil {
			return fmt.Errorf("deleting old audit records: %w", err)
		}
	}
	return nil
}
