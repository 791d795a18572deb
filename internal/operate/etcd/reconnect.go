package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/internal/base/text"
)

const (
	// leaseNamespace has a Lease for each node, which its kubelet renews.
	leaseNamespace = "kube-node-lease"
	pollInterval   = time.Second
	namesShown     = 5
)

// reconnect restarts the kubelets, so that nodes that are newer than the snapshot register again,
// and resumes the cluster once they have reconnected. If machines are lost, it resumes first: the
// endpoint may have been on one of them, and only the manager moves it.
func (r *Restore) reconnect(ctx context.Context) error {
	start := time.Now()
	r.Progress("Waiting for kubelets")
	if len(r.Skip) > 0 {
		if err := r.resume(ctx); err != nil {
			return err
		}
	}
	if err := r.restartKubelets(ctx); err != nil {
		return err
	}
	if err := r.awaitKubelets(ctx, start); err != nil {
		return err
	}
	return r.resume(ctx)
}

// restartKubelets forgets workers that don't respond: their kubelets reconnect when they are back.
func (r *Restore) restartKubelets(ctx context.Context) error {
	for _, m := range slices.Clone(r.machines) {
		if !isNode(m) {
			continue
		}
		err := r.do(ctx, m, "restart-kubelet")
		if err != nil && isControlPlane(m) {
			return err
		}
		if err != nil {
			r.Progress("Skipping a worker that doesn't respond: " + err.Error())
			r.machines = slices.DeleteFunc(r.machines, func(one *machine) bool { return one == m })
		}
	}
	return nil
}

// isNode reports whether the kubelet of a machine belongs to the cluster.
func isNode(m *machine) bool { return m.server || !m.member }

// awaitKubelets waits until all kubelets have renewed their Leases.
func (r *Restore) awaitKubelets(ctx context.Context, since time.Time) error {
	config, err := r.Cluster.API(ctx)
	if err != nil {
		return err
	}
	config.Timeout = 10 * time.Second
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	waiting := "the API server"
	for {
		leases, err := api.CoordinationV1().Leases(leaseNamespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			missing := r.absent(leases.Items, since)
			if len(missing) == 0 {
				return nil
			}
			waiting = "the kubelets of " + text.FirstN(missing, namesShown)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("etcd is restored, but timed out waiting for %s (%w)", waiting, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// absent returns the machines whose kubelet has not renewed its Lease since a time.
func (r *Restore) absent(leases []coordinationv1.Lease, since time.Time) []string {
	var out []string
	for _, m := range r.machines {
		if !isNode(m) {
			continue
		}
		if !slices.ContainsFunc(leases, func(l coordinationv1.Lease) bool {
			return strings.EqualFold(l.Name, m.name) && l.Spec.RenewTime != nil && l.Spec.RenewTime.After(since)
		}) {
			out = append(out, m.name)
		}
	}
	return out
}
