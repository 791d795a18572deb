package tool

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/delegation"
)

// Access reports what service accounts may read on the management cluster. delegation.Policy
// implements it.
type Access interface {
	MayGet(ctx context.Context, account client.ObjectKey, resource schema.GroupResource, object client.ObjectKey) error
}

// resourceOf returns the resource of a kind that releases refer to.
func resourceOf(kind string) schema.GroupResource {
	if kind == "ConfigMap" {
		return schema.GroupResource{Resource: "configmaps"}
	}
	return schema.GroupResource{Resource: "secrets"}
}

// get reads an object that a release refers to, if the release may use it.
func (i Input) get(ctx context.Context, r *addonsv1.HelmReleaseProxy, kind string, key client.ObjectKey) (sources.Content, error) {
	if err := i.check(ctx, r, kind, key); err != nil {
		return sources.Content{}, err
	}
	return i.Sources.Get(ctx, kind, key)
}

// value reads one key of such an object.
func (i Input) value(ctx context.Context, r *addonsv1.HelmReleaseProxy, kind string, key client.ObjectKey, name string) ([]byte, error) {
	if err := i.check(ctx, r, kind, key); err != nil {
		return nil, err
	}
	return i.Sources.Value(ctx, kind, key, name)
}

// check denies objects of other namespaces to releases without a service account, and to releases
// with one everything that the account may not read.
func (i Input) check(ctx context.Context, r *addonsv1.HelmReleaseProxy, kind string, key client.ObjectKey) error {
	account := r.Spec.ServiceAccountName
	switch {
	case i.Access == nil, i.OfPackage && ofMirror(r, key):
		return nil
	case account != "":
		return i.Access.MayGet(ctx, client.ObjectKey{Namespace: r.Namespace, Name: account}, resourceOf(kind), key)
	case key.Namespace == r.Namespace:
		return nil
	}
	return &delegation.DeniedError{Message: fmt.Sprintf(
		"%s %q is in another namespace; copy it to namespace %q, or name an account that may get it in serviceAccountName", kind, key, r.Namespace)}
}

// ofMirror reports whether a Secret has the credentials of the mirror that the packages of a
// cluster are downloaded from.
func ofMirror(r *addonsv1.HelmReleaseProxy, key client.ObjectKey) bool {
	return key.Name == packagesv1.MirrorCredentials &&
		(key.Namespace == packagesv1.Namespace || key.Namespace == packagesv1.NamespacePrefix+r.Spec.ClusterRef.Name)
}
