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
	"github.com/drover-dev/drover/internal/controllers/fresh"
)

// install writes the HelmReleaseProxy, unless it says what it should, or something has to come first.
func (c *Controller) install(ctx context.Context, s *scope) (bool, error) {
	s.changed = s.release == nil || !equality.Semantic.DeepEqual(s.release.Spec, *s.wanted)
	switch {
	case !s.changed, s.stuck != nil, len(s.missing) > 0:
		return true, nil
	case s.release == nil:
		return true, c.createRelease(ctx, s)
	case !s.release.DeletionTimestamp.IsZero():
		s.stuck = &problem{packagesv1.InstallingReason, fmt.Sprintf("HelmReleaseProxy %q was deleted, and is made anew when it is gone", s.release.Name)}
		return true, nil
	default:
		return true, c.updateRelease(ctx, s)
	}
}

func (c *Controller) createRelease(ctx context.Context, s *scope) error {
	object := &addonsv1.HelmReleaseProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.pack.Namespace, Name: s.pack.Name, Labels: c.labels()},
		Spec:       *s.wanted.DeepCopy(),
	}
	object.Labels[packagesv1.PackageLabel] = format.MustFormatValue(s.pack.Name)
	object.Labels[clusterv1.ClusterNameLabel] = s.target.Cluster
	// The release controller would put it on before anything else.
	controllerutil.AddFinalizer(object, addonsv1.HelmReleaseProxyFinalizer)
	if err := controllerutil.SetControllerReference(s.pack, object, c.Client.Scheme()); err != nil {
		return fmt.Errorf("owning HelmReleaseProxy %q: %w", object.Name, err)
	}
	err := c.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		s.after = fresh.Retry // the cache is behind
		return nil
	}
	if err != nil {
		return fmt.Errorf("making HelmReleaseProxy %q: %w", object.Name, err)
	}
	c.releases.Note(object)
	s.release = object
	written.WithLabelValues("create").Inc()
	return nil
}

func (c *Controller) updateRelease(ctx context.Context, s *scope) error {
	after := s.release.DeepCopy()
	after.Spec = *s.wanted.DeepCopy()
	if err := c.Client.Patch(ctx, after, client.MergeFrom(s.release)); err != nil {
		return fmt.Errorf("changing HelmReleaseProxy %q: %w", after.Name, err)
	}
	c.releases.Note(after)
	s.release = after
	written.WithLabelValues("update").Inc()
	return nil
}

// labels are on everything that is made for a Package.
func (c *Controller) labels() map[string]string {
	out := map[string]string{}
	if c.WatchFilter != "" {
		out[clusterv1.WatchLabel] = c.WatchFilter
	}
	return out
}
