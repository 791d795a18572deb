package addons

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// formerLease is held by the controller that HelmChartProxies were made for.
const formerLease = "controller-leader-election-caaph"

// alone refuses to go on beside that controller: both would act on the same objects, and each would take the finalizers of the other
// for its own.
func alone(ctx context.Context, reader client.Reader) error {
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

// held says that the holder of a lease was alive when it was last due.
func held(lease *coordinationv1.Lease, now time.Time) bool {
	s := lease.Spec
	if ptr.Deref(s.HolderIdentity, "") == "" || s.RenewTime == nil {
		return false
	}
	return now.Before(s.RenewTime.Add(time.Duration(ptr.Deref(s.LeaseDurationSeconds, 0)) * time.Second))
}
