package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/delegation"
	"github.com/drover-dev/drover/internal/model/target"
)

// gatherPermission finds out whether the release may use its Cluster:
//
//	namespace of a tenant, no account    ──▶ denied
//	Cluster in the same namespace        ──▶ permitted
//	written by the Package of its name   ──▶ permitted
//	no account                           ──▶ denied
//	account may get the Cluster          ──▶ permitted
func (v *visit) gatherPermission(ctx context.Context, f *facts) error {
	err := v.Policy.RequireAccount(ctx, v.release.Namespace, v.release.Spec.ServiceAccountName)
	if err == nil {
		err = v.checkCluster(ctx, f)
	}
	switch {
	case errors.As(err, new(*unconfirmedError)):
		f.clusterProblem = &problem{reason: addonsv1.NotAvailableReason, message: message(err), after: confirmEvery, transient: true}
	case errors.As(err, new(*delegation.DeniedError)):
		f.denied = true
		f.clusterProblem = &problem{reason: addonsv1.AccessDeniedReason, message: message(err), after: delegation.DeniedFor}
	default:
		return err
	}
	return nil
}

// checkCluster returns a DeniedError if the release may not use its Cluster.
func (v *visit) checkCluster(ctx context.Context, f *facts) error {
	var err error
	if f.ofPackage, err = v.ofPackage(ctx); err != nil {
		return err
	}
	cluster, account := v.cluster(), v.release.Spec.ServiceAccountName
	switch {
	case cluster.Namespace == v.release.Namespace, f.ofPackage:
		return nil
	case account != "":
		resource := schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "clusters"}
		return v.Policy.MayGet(ctx, client.ObjectKey{Namespace: v.release.Namespace, Name: account}, resource, cluster)
	}
	return &delegation.DeniedError{Message: fmt.Sprintf(
		"Cluster %q is in another namespace; name an account that may get it in serviceAccountName", cluster)}
}

// unconfirmedError reports that a Package has not reported its target yet.
type unconfirmedError struct{ name string }

func (e *unconfirmedError) Error() string {
	return fmt.Sprintf("waiting for Package %q to report its target", e.name)
}

// ofPackage reports whether a Package wrote the release: the Package has its name and owns it by
// UID, and its target is the Cluster.
func (v *visit) ofPackage(ctx context.Context) (bool, error) {
	owner := target.PackageOf(v.release)
	if owner == nil || owner.Name != v.release.Name {
		return false, nil
	}
	pack := &packagesv1.Package{}
	if err := v.Client.Get(ctx, v.key(), pack, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if pack.UID != owner.UID {
		return false, nil
	}
	if t := pack.Status.Target; t != nil {
		return v.isTarget(ctx, t)
	}
	return v.expectedTarget(ctx, v.cluster())
}

// isTarget reports whether the Cluster is the target that a Package has reported. One that has been
// created with the same name since then is not. A Cluster that doesn't exist is reported elsewhere.
func (v *visit) isTarget(ctx context.Context, t *packagesv1.PackageTarget) (bool, error) {
	key := v.cluster()
	if t.Cluster != key.Name || t.ClusterNamespace != key.Namespace {
		return false, nil
	}
	cluster := &clusterv1.Cluster{}
	err := v.Client.Get(ctx, key, cluster, client.UnsafeDisableDeepCopy)
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return target.Installed(t, v.release, cluster), nil
}

// expectedTarget reports whether a Package that has not reported its target yet has this one. It
// creates the release before it reports.
func (v *visit) expectedTarget(ctx context.Context, cluster client.ObjectKey) (bool, error) {
	if !slices.Contains(target.Candidates(v.key()), cluster.Name) {
		return false, nil
	}
	bundles := &packagesv1.PackageBundleController{}
	err := v.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: cluster.Name}, bundles, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	switch bundles.Spec.ClusterNamespace {
	case cluster.Namespace:
		return true, nil
	case "":
		if cluster.Namespace == packagesv1.KubeconfigNamespace {
			return true, nil
		}
		return false, &unconfirmedError{v.release.Name}
	default:
		return false, nil
	}
}
