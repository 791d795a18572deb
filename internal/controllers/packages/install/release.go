package install

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/labels/format"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// applyRelease creates or updates the HelmReleaseProxy.
func (c *Controller) applyRelease(ctx context.Context, s *scope) error {
	s.changed = s.release == nil || !equality.Semantic.DeepEqual(s.release.Spec, *s.wanted)
	switch chooseWrite(&s.facts) {
	case writeNew:
		return c.createRelease(ctx, s)
	case writeChange:
		return c.updateRelease(ctx, s)
	default:
		return nil
	}
}

// write is what to do with the HelmReleaseProxy.
type write int

const (
	writeNothing write = iota
	writeNew
	writeChange
)

// chooseWrite decides what to do with the HelmReleaseProxy. A change waits for missing dependencies
// and for everything else that keeps the release from being written.
func chooseWrite(f *facts) write {
	switch {
	case !f.changed, len(f.missing) > 0, releaseProblem(f) != nil:
		return writeNothing
	case f.release == nil:
		return writeNew
	default:
		return writeChange
	}
}

func (c *Controller) createRelease(ctx context.Context, s *scope) error {
	object := &addonsv1.HelmReleaseProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.pack.Namespace, Name: s.pack.Name, Labels: c.labels()},
		Spec:       *s.wanted.DeepCopy(),
	}
	object.Labels[packagesv1.PackageLabel] = format.MustFormatValue(s.pack.Name)
	object.Labels[clusterv1.ClusterNameLabel] = s.target.Cluster
	// The release controller would add it first.
	controllerutil.AddFinalizer(object, addonsv1.HelmReleaseProxyFinalizer)
	if err := controllerutil.SetControllerReference(s.pack, object, c.Client.Scheme()); err != nil {
		return fmt.Errorf("setting the owner of HelmReleaseProxy %q: %w", object.Name, err)
	}
	err := c.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		s.after = reconcile.ConflictRetry // the cache lags
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating HelmReleaseProxy %q: %w", object.Name, err)
	}
	s.release = object
	written.WithLabelValues("create").Inc()
	return nil
}

func (c *Controller) updateRelease(ctx context.Context, s *scope) error {
	after := s.release.DeepCopy()
	after.Spec = *s.wanted.DeepCopy()
	if err := c.Client.Patch(ctx, after, client.MergeFrom(s.release)); err != nil {
		return fmt.Errorf("updating HelmReleaseProxy %q: %w", after.Name, err)
	}
	s.release = after
	written.WithLabelValues("update").Inc()
	return nil
}

// labels returns the labels of all objects that are created for a Package.
func (c *Controller) labels() map[string]string {
	out := map[string]string{}
	if c.WatchFilter != "" {
		out[clusterv1.WatchLabel] = c.WatchFilter
	}
	return out
}
