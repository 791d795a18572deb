package admission

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// controllerRules validates PackageBundleControllers. It never connects to the cluster, because an
// unreachable cluster must not block changes.
type controllerRules struct {
	// reader is the manager's cache.
	reader client.Reader
}

// ValidateCreate checks the active bundle.
func (r *controllerRules) ValidateCreate(ctx context.Context, c *packagesv1.PackageBundleController) (admission.Warnings, error) {
	return nil, r.check(ctx, c, c.Status.KubernetesVersion)
}

// ValidateUpdate checks the active bundle if it changed.
func (r *controllerRules) ValidateUpdate(ctx context.Context, was, is *packagesv1.PackageBundleController) (admission.Warnings, error) {
	if was.Spec.ActiveBundle == is.Spec.ActiveBundle {
		return nil, nil
	}
	return nil, r.check(ctx, is, was.Status.KubernetesVersion)
}

// ValidateDelete accepts all deletions.
func (r *controllerRules) ValidateDelete(ctx context.Context, _ *packagesv1.PackageBundleController) (admission.Warnings, error) {
	return ignored(ctx)
}

// check validates the name of the active bundle, which may be downloaded later. The Kubernetes
// version of the cluster comes from the last status or from Cluster API; if it is unknown, a
// condition reports a mismatch later.
func (r *controllerRules) check(ctx context.Context, c *packagesv1.PackageBundleController, kubernetes string) error {
	active := c.Spec.ActiveBundle
	if active == "" {
		return nil
	}
	name, err := bundle.ParseName(active)
	if err != nil {
		return rejection(fmt.Sprintf("activeBundle %q not present on cluster", active))
	}
	if kubernetes == "" {
		kubernetes = r.planned(ctx, c)
	}
	if kubernetes != "" && name.Kubernetes() != kubernetes {
		return rejection(fmt.Sprintf("kuberneetes version v%s does not match %s", strings.ReplaceAll(kubernetes, ".", "-"), active))
	}
	return nil
}

// planned returns the minor version of the cluster's control plane in Cluster API, empty if it is
// unknown.
func (r *controllerRules) planned(ctx context.Context, c *packagesv1.PackageBundleController) string {
	clusters := &clusterv1.ClusterList{}
	if err := r.reader.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return ""
	}
	cluster, err := target.Cluster(c, clusters.Items)
	if err != nil {
		return ""
	}
	ref := cluster.Spec.ControlPlaneRef
	plane := &controlplanev1.KubeadmControlPlane{}
	if ref.Kind != "KubeadmControlPlane" || r.reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, plane) != nil {
		return ""
	}
	v, err := utilversion.ParseGeneric(cmp.Or(plane.Status.Version, plane.Spec.Version))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d.%d", v.Major(), v.Minor())
}
