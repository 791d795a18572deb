package addons

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/elapsed"
)

// formerLease is the lease of the original controller of HelmChartProxies.
const formerLease = "controller-leader-election-caaph"

// rejectOtherController fails if the original controller is running. Both would reconcile the same
// objects with the same finalizers.
func rejectOtherController(ctx context.Context, reader client.Reader) error {
	leases := &coordinationv1.LeaseList{}
	if err := reader.List(ctx, leases); err != nil {
		return fmt.Errorf("checking for another HelmChartProxy controller: %w", err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if lease.Name == formerLease && held(lease, time.Now()) {
			return fmt.Errorf("another HelmChartProxy controller is running: %q holds lease %s/%s; stop it first: kubectl -n %s scale deployment caaph-controller-manager --replicas 0",
				ptr.Deref(lease.Spec.HolderIdentity, ""), lease.Namespace, lease.Name, lease.Namespace)
		}
	}
	return nil
}

// held reports whether the holder of a lease has renewed it in time.
func held(lease *coordinationv1.Lease, now time.Time) bool {
	s := lease.Spec
	if ptr.Deref(s.HolderIdentity, "") == "" || s.RenewTime == nil {
		return false
	}
	duration := time.Duration(ptr.Deref(s.LeaseDurationSeconds, 0)) * time.Second
	return elapsed.Left(duration, s.RenewTime.Time, now) > 0
}
