package install

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// scope is one reconcile of one Package.
type scope struct {
	facts

	before *packagesv1.Package
	// after is when to look again, for what nothing tells: that a registry may answer again, or that the cache has caught up.
	after time.Duration
}

// facts are what a reconcile found out, and what the status is made of.
type facts struct {
	pack *packagesv1.Package

	// target is nil if it is not known, and untargeted then says why.
	target     *packagesv1.PackageTarget
	untargeted error

	controller *packagesv1.PackageBundleController
	bundle     *packagesv1.PackageBundle
	// found is what the bundle has, and unsourced why there is nothing that can be used.
	found     bundle.Found
	unsourced *problem
	upgrades  []packagesv1.PackageAvailableUpgrade

	// missing are dependencies that are not installed, looked says that they were looked for, and undependable is why they never will be.
	missing      []string
	looked       bool
	undependable *problem

	// release is the HelmReleaseProxy as it was found or written, nil if there is none.
	release *addonsv1.HelmReleaseProxy
	// wanted is what it should say, nil if that is not known.
	wanted *addonsv1.HelmReleaseProxySpec
	// changed says that it did not say so when the reconcile began, and stuck what keeps it from being written.
	changed bool
	stuck   *problem
}

// problem is why something is not as it should be.
type problem struct{ reason, message string }

// open reads the Package. There is nothing to do for one that is gone or paused.
func (c *Controller) open(ctx context.Context, key client.ObjectKey) (*scope, error) {
	pack := &packagesv1.Package{}
	if err := c.Client.Get(ctx, key, pack); err != nil {
		c.forget(key)
		return nil, client.IgnoreNotFound(err)
	}
	if annotations.HasPaused(pack) {
		return nil, nil
	}
	return &scope{before: pack, facts: facts{pack: pack.DeepCopy()}}, nil
}

// forget leaves nothing behind of a Package that is gone.
func (c *Controller) forget(key client.ObjectKey) {
	c.memory.forget(key)
	c.packages.Forget(key)
	c.releases.Forget(key)
}

func (s *scope) key() client.ObjectKey { return client.ObjectKeyFromObject(s.pack) }

func (f *facts) deleting() bool { return !f.pack.DeletionTimestamp.IsZero() }

// internal says that nobody but Drover answers for what the Package says.
func (f *facts) internal() bool { return f.pack.Annotations[packagesv1.InternalAnnotation] == "true" }

// hold makes the Package stay until what is on the cluster is gone.
func (c *Controller) hold(ctx context.Context, s *scope) (bool, error) {
	before := s.pack.DeepCopy()
	if !controllerutil.AddFinalizer(s.pack, packagesv1.PackageFinalizer) {
		return true, nil
	}
	if err := c.Client.Patch(ctx, s.pack, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("holding Package %q: %w", s.key(), err)
	}
	c.packages.Note(s.pack)
	s.before = s.pack.DeepCopy()
	return true, nil
}

// close tells what was found out, if that is news.
func (c *Controller) close(ctx context.Context, s *scope) error {
	if s.gone() {
		return nil
	}
	s.report()
	c.memory.state(s.key(), s.pack.Status.State)
	if reflect.DeepEqual(s.before.Status, s.pack.Status) {
		return nil
	}
	// Fields of the status are required, so that a patch of a few is refused where there was none.
	err := c.Client.Status().Update(ctx, s.pack)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Package %q: %w", s.key(), err)
	}
	if err == nil {
		c.packages.Note(s.pack)
	}
	c.tell(s)
	return nil
}

// gone says that the Package was let go.
func (s *scope) gone() bool {
	return s.deleting() && !controllerutil.ContainsFinalizer(s.pack, packagesv1.PackageFinalizer)
}
