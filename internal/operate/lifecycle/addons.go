package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/addons/stages"
	"github.com/drover-dev/drover/internal/model/lockstep"
)

// AddOns returns the add-ons that an upgrade of Kubernetes waits for. It is empty if the version
// stays the same, or if the caller may not read add-ons.
func (w *Workload) AddOns(ctx context.Context) ([]lockstep.AddOn, error) {
	if err := w.connect(ctx); err != nil {
		return nil, err
	}
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	if err != nil || live.Spec.KubernetesVersion == w.Config.Cluster.Spec.KubernetesVersion {
		return nil, err
	}
	to, err := version.ForMinor(w.Config.Cluster.Spec.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1.Cluster{}
	err = w.plane.Client.Get(ctx, client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: live.Name}, cluster)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Cluster API objects of cluster %q: %w", live.Name, err)
	}
	found, err := stages.Reader{Reader: w.plane.Client, Planned: true}.Of(ctx, cluster, to)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return found, err
}

// AddOns returns the add-ons that an upgrade of Kubernetes waits for.
func (m *Management) AddOns(ctx context.Context) ([]lockstep.AddOn, error) {
	w, err := m.ownCluster()
	if err != nil {
		return nil, err
	}
	return w.AddOns(ctx)
}
