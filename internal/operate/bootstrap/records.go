package management

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

// copyRecords brings along who did what to a cluster. Records stay at the source too, where nobody deletes any. What is only noted on the
// Cluster yet becomes a record there: its controllers are paused, and on the other side the Cluster starts to count anew.
func copyRecords(ctx context.Context, source client.Reader, destination client.Client, name string) error {
	records := &droverv1.AuditRecordList{}
	err := source.List(ctx, records, client.MatchingLabels{droverv1.ClusterLabel: name})
	if meta.IsNoMatchError(err) {
		return nil // An older Drover keeps none.
	}
	if err != nil {
		return fmt.Errorf("reading who did what to it: %w", err)
	}
	clusters := &anywherev1.ClusterList{}
	if err := source.List(ctx, clusters); err != nil {
		return fmt.Errorf("reading who did what to it: %w", err)
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
			return fmt.Errorf("writing who did what to it: %w", err)
		}
	}
	return nil
}
