package bootstrap

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/model/audit"
)

// copyRecords copies the audit records of a cluster. They stay on the source as well. What is only
// noted on the Cluster so far becomes a record on the destination: the source's controllers are
// paused, and on the destination generations start again.
func copyRecords(ctx context.Context, source client.Reader, destination client.Client, name string) error {
	records := &droverv1.AuditRecordList{}
	err := source.List(ctx, records, client.MatchingLabels{droverv1.ClusterLabel: name})
	if meta.IsNoMatchError(err) {
		return nil // An older Drover has none.
	}
	if err != nil {
		return fmt.Errorf("reading audit records: %w", err)
	}
	clusters := &anywherev1.ClusterList{}
	if err := source.List(ctx, clusters); err != nil {
		return fmt.Errorf("reading audit records: %w", err)
	}
	for i := range clusters.Items {
		if clusters.Items[i].Name != name {
			continue
		}
		for _, pending := range audit.Pending(&clusters.Items[i]) {
			records.Items = append(records.Items, *pending)
		}
	}
	for _, one := range records.Items {
		record := &droverv1.AuditRecord{ObjectMeta: metav1.ObjectMeta{Name: one.Name, Labels: one.Labels}, Spec: one.Spec}
		if err := destination.Create(ctx, record); err != nil && !alreadyExists(err) {
			return fmt.Errorf("writing audit records: %w", err)
		}
	}
	return nil
}
