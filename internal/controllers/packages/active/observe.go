package active

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/workload"
)

// observe gathers the facts that decisions depend on. It makes no request to a cluster or a
// registry.
func observe(ctx context.Context, v *visit) error {
	o := v.Object
	f := &v.facts
	*f = facts{
		now: v.Clock.Now(), spec: &o.Spec, status: o.Status.DeepCopy(), name: o.Name, identity: string(o.UID),
		ignored:      o.Namespace != packagesv1.Namespace,
		hasFinalizer: controllerutil.ContainsFinalizer(o, packagesv1.ControllerFinalizer),
		abandoned:    o.Annotations[packagesv1.AbandonAnnotation] == "true",
	}
	if o.DeletionTimestamp != nil {
		f.deleting = o.DeletionTimestamp.Time
		f.deletingFor = v.deletions.Known(v.Clock, v.Key(), f.deleting)
	}
	if f.ignored {
		return nil
	}
	known := v.memory.Get(v.Key())
	for _, step := range []func(context.Context, *facts, *knowledge) error{
		v.observeCluster, v.observePackages, v.observeCredentials, v.observeBundles,
	} {
		if err := step(ctx, f, &known); err != nil {
			return err
		}
	}
	return nil
}

// observeCluster finds the Cluster, the connection to it, and its last known version.
func (v *visit) observeCluster(ctx context.Context, f *facts, known *knowledge) error {
	f.version = v.Before().Status.KubernetesVersion
	cluster, err := v.findCluster(ctx)
	switch {
	case errors.As(err, new(*target.UnknownError)):
		f.gone = true
		v.forgetConnection(known)
		f.unreachable = &problem{reason: packagesv1.TargetUnknownReason, message: err.Error()}
		return nil
	case errors.As(err, new(*target.AmbiguousError)):
		f.unreachable = &problem{reason: packagesv1.TargetAmbiguousReason, message: err.Error()}
		return nil
	case errors.As(err, new(*target.DeniedError)):
		f.unreachable = &problem{reason: packagesv1.TargetDeniedReason, message: err.Error()}
		return nil
	case err != nil:
		return err
	}
	f.cluster, f.tenant = client.ObjectKeyFromObject(cluster), target.Tenant(cluster)
	if namespace, err := v.Secrets.Namespace(ctx, packagesv1.NamespacePrefix+f.name); err != nil {
		return err
	} else if namespace != nil {
		f.foreignNamespace = target.CheckNamespace(cluster, namespace) != nil
	}
	if !ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, true) {
		f.unreachable = unreachable(0, "Control plane of Cluster %q is not initialized", f.cluster)
		return nil
	}
	connection, err := v.Clusters.Get(ctx, f.cluster)
	if err != nil {
		f.unreachable = v.unavailable(f.cluster, err)
		return nil
	}
	f.connected = connection
	v.observeVersion(f, known)
	return nil
}

// forgetConnection closes the connection to a cluster that is gone.
func (v *visit) forgetConnection(known *knowledge) {
	if known.through != nil {
		v.Clusters.Forget(known.through.Key())
		v.memory.Update(v.Key(), func(k *knowledge) { k.through = nil })
	}
}

// observeVersion reports what is known through the current connection. If the connection was silent
// before, the version must be queried again.
func (v *visit) observeVersion(f *facts, known *knowledge) {
	_, silent := f.connected.Busy()
	switch {
	case known.through != f.connected || silent:
		f.versionStale = true
	case known.versionErr != nil:
		f.unreachable = unreachable(0, "Cluster %q is unreachable: %v", f.cluster, known.versionErr)
		var over bool
		over, f.unreachable.after = elapsed(f.now, known.queriedAt, askRetry)
		f.versionStale = over
	default:
		f.version = known.version
		f.versionStale, _ = elapsed(f.now, known.queriedAt, max(f.interval(), askAgain))
	}
}

func unreachable(after time.Duration, format string, args ...any) *problem {
	return &problem{reason: packagesv1.UnreachableReason, message: text.Truncate(fmt.Sprintf(format, args...)), after: after}
}

// unavailable explains why there is no connection. A new connection triggers a reconcile, except
// for a cluster that is unreachable.
func (v *visit) unavailable(key client.ObjectKey, err error) *problem {
	silent := &workload.UnreachableError{}
	switch {
	case errors.As(err, &silent):
		// The message must not contain the time, or it would change with every attempt.
		return unreachable(max(silent.Until.Sub(v.Clock.Now()), time.Second), "Cluster %q is unreachable: %v", key, silent.Cause)
	case errors.Is(err, clustercache.ErrClusterNotConnected):
		return unreachable(0, "Cluster %q is not connected", key)
	default:
		return unreachable(firstRetry, "Cluster %q: %v", key, err)
	}
}

func (v *visit) findCluster(ctx context.Context) (*clusterv1.Cluster, error) {
	list := &clusterv1.ClusterList{}
	if err := v.Client.List(ctx, list, client.MatchingFields{byName: v.Object.Name}); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	return target.Cluster(v.Object, list.Items)
}

// observePackages lists the packages on the cluster.
func (v *visit) observePackages(ctx context.Context, f *facts, _ *knowledge) error {
	if f.cluster.Name == "" {
		return nil
	}
	list := &packagesv1.PackageList{}
	if err := v.Client.List(ctx, list, client.MatchingFields{byTarget: f.cluster.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the packages of Cluster %q: %w", f.cluster, err)
	}
	f.credentials.namespaces = map[string]bool{}
	for i := range list.Items {
		p := &list.Items[i]
		f.installed = append(f.installed, p.Spec.PackageName)
		f.credentials.namespaces[p.Status.Target.Namespace] = true
	}
	return nil
}

// observeBundles reads the active and latest bundles and the results of earlier checks.
func (v *visit) observeBundles(ctx context.Context, f *facts, known *knowledge) error {
	if tag, err := bundle.LatestTag(f.version); err == nil {
		f.place = v.place(tag)
	}
	f.latestCheck, f.activeCheck = known.latestCheck, known.activeCheck
	if f.latestCheck.place == "" {
		f.latestCheck = v.recall(f.place)
	}
	if f.spec.ActiveBundle != "" {
		f.activePlace = v.place(f.spec.ActiveBundle)
	}
	var err error
	if f.active, f.activeFault, err = v.bundle(ctx, f.spec.ActiveBundle); err != nil {
		return err
	}
	f.latest, f.latestFault, err = v.bundle(ctx, f.newest())
	return err
}

// place identifies a bundle in the registry of the spec.
func (v *visit) place(tag string) string {
	return v.Object.Spec.Registry() + " " + v.Object.Spec.Repository() + ":" + tag
}

// recall restores the last successful check from the status, so that a restarted manager doesn't
// check all registries again.
func (v *visit) recall(place string) check {
	s := &v.Before().Status
	if s.Spec == nil || s.LastCheck == nil || s.LatestBundle == "" || !isTrue(s.Conditions, packagesv1.RegistryReachable) {
		return check{}
	}
	if s.Spec.Registry() != v.Object.Spec.Registry() || s.Spec.Repository() != v.Object.Spec.Repository() {
		return check{}
	}
	return check{place: place, at: s.LastCheck.Time, name: s.LatestBundle}
}

// bundle returns a PackageBundle and the reason why it can't be used, if there is one.
func (v *visit) bundle(ctx context.Context, name string) (*packagesv1.PackageBundle, error, error) {
	if name == "" {
		return nil, nil, nil
	}
	b := &packagesv1.PackageBundle{}
	if err := v.Client.Get(ctx, client.ObjectKey{Namespace: packagesv1.Namespace, Name: name}, b); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("reading bundle %q: %w", name, err)
	}
	return b, v.usable(b), nil
}

// edition identifies a version of a PackageBundle.
type edition struct {
	uid     types.UID
	version string
}

// usable returns the reason why a bundle can't be used. It verifies the signature once per edition.
func (c *Controller) usable(b *packagesv1.PackageBundle) error {
	which := edition{b.UID, b.ResourceVersion}
	found, ok := c.verdicts.Get(which)
	if !ok {
		found = verdict{bundle.Verify(b, c.Keys)}
		c.verdicts.Add(which, found)
	}
	if v, _ := found.(verdict); v.err != nil {
		return v.err
	}
	return bundle.CheckVersion(b, c.Version)
}

// verdict is the cached result of a verification.
type verdict struct{ err error }

// minor returns the minor version in the notation of bundles. Some servers append a plus to the
// minor, and some report only the full version.
func minor(info *version.Info) string {
	first, second := info.Major, info.Minor
	if first == "" || second == "" {
		parts := append(strings.SplitN(strings.TrimPrefix(info.GitVersion, "v"), ".", 3), "", "")
		first, second = parts[0], parts[1]
	}
	return first + "." + strings.TrimRight(second, "+")
}
