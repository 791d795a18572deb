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
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/workload"
)

// observe finds out everything that the choice depends on. It makes no request to a cluster or a registry.
func (v *visit) observe(ctx context.Context) (facts, error) {
	o := v.object
	f := facts{
		now: v.Clock.Now(), spec: &o.Spec, status: v.before.Status.DeepCopy(), name: o.Name, identity: string(o.UID),
		elsewhere: o.Namespace != packagesv1.Namespace,
		held:      controllerutil.ContainsFinalizer(o, packagesv1.ControllerFinalizer),
		abandoned: o.Annotations[packagesv1.AbandonAnnotation] == "true",
	}
	if o.DeletionTimestamp != nil {
		f.deleting = o.DeletionTimestamp.Time
	}
	if f.elsewhere {
		return f, nil
	}
	known := v.memory.of(v.key())
	for _, step := range []func(context.Context, *facts, *knowledge) error{
		v.observeCluster, v.observePackages, v.observeCredentials, v.observeBundles,
	} {
		if err := step(ctx, &f, &known); err != nil {
			return f, err
		}
	}
	return f, nil
}

// observeCluster finds the Cluster, the connection to it, and what it said last.
func (v *visit) observeCluster(ctx context.Context, f *facts, known *knowledge) error {
	f.version = v.before.Status.KubernetesVersion
	cluster, err := v.findCluster(ctx)
	unknown, ambiguous := (*target.UnknownError)(nil), (*target.AmbiguousError)(nil)
	switch {
	case errors.As(err, &unknown):
		f.gone = true
		v.forgetConnection(known)
		f.unreachable = &problem{reason: packagesv1.TargetUnknownReason, message: err.Error()}
		return nil
	case errors.As(err, &ambiguous):
		f.unreachable = &problem{reason: packagesv1.TargetAmbiguousReason, message: err.Error()}
		return nil
	case err != nil:
		return err
	}
	f.cluster = client.ObjectKeyFromObject(cluster)
	if !ptr.Deref(cluster.Status.Initialization.ControlPlaneInitialized, true) {
		f.unreachable = unreachable(0, "the control plane of Cluster %q is not initialized", f.cluster)
		return nil
	}
	connection, err := v.Clusters.Get(ctx, f.cluster)
	if err != nil {
		f.unreachable = v.unavailable(f.cluster, err)
		return nil
	}
	f.connected = connection
	v.hear(f, known)
	return nil
}

// forgetConnection closes what leads to a cluster that is gone.
func (v *visit) forgetConnection(known *knowledge) {
	if known.through != nil {
		v.Clusters.Forget(known.through.Key())
		v.memory.update(v.key(), func(k *knowledge) { k.through = nil })
	}
}

// hear says what is known through the present connection. After a silence somebody must ask, and whoever was given the connection is the one.
func (v *visit) hear(f *facts, known *knowledge) {
	_, silent := f.connected.Busy()
	switch {
	case known.through != f.connected || silent:
		f.unasked = true
	case known.unheard != nil:
		f.unreachable = unreachable(0, "Cluster %q does not answer: %v", f.cluster, known.unheard)
		var over bool
		over, f.unreachable.after = elapsed(f.now, known.heard, askRetry)
		f.unasked = over
	default:
		f.version = known.version
		f.unasked, _ = elapsed(f.now, known.heard, max(f.interval(), askAgain))
	}
}

func unreachable(after time.Duration, format string, args ...any) *problem {
	return &problem{reason: packagesv1.UnreachableReason, message: bound(fmt.Sprintf(format, args...)), after: after}
}

// unavailable is why there is no connection. That there is one again is an event, but for a cluster that does not answer.
func (v *visit) unavailable(key client.ObjectKey, err error) *problem {
	silent := &workload.UnreachableError{}
	switch {
	case errors.As(err, &silent):
		// A message with a time in it would be a new one each time.
		return unreachable(max(silent.Until.Sub(v.Clock.Now()), time.Second), "Cluster %q does not answer: %v", key, silent.Cause)
	case errors.Is(err, clustercache.ErrClusterNotConnected):
		return unreachable(0, "Cluster %q is not connected", key)
	default:
		return unreachable(firstRetry, "Cluster %q: %v", key, err)
	}
}

func (v *visit) findCluster(ctx context.Context) (*clusterv1.Cluster, error) {
	list := &clusterv1.ClusterList{}
	if err := v.Client.List(ctx, list, client.MatchingFields{byName: v.object.Name}); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	found := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		found = append(found, client.ObjectKeyFromObject(&list.Items[i]))
	}
	key, err := target.Cluster(v.object.Name, v.object.Spec.ClusterNamespace, found)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if client.ObjectKeyFromObject(&list.Items[i]) == key {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("choosing Cluster %q among %d", key, len(found))
}

// observePackages finds what is installed on the cluster.
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

// observeBundles finds the bundles that are here, and what was found out about others.
func (v *visit) observeBundles(ctx context.Context, f *facts, known *knowledge) error {
	if tag, err := bundle.LatestTag(f.version); err == nil {
		f.place = v.place(tag)
	}
	f.look, f.fetch = known.look, known.fetch
	if f.look.place == "" {
		f.look = v.recall(f.place)
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

// place names a bundle of the registry that the spec says.
func (v *visit) place(tag string) string {
	return v.object.Spec.Registry() + " " + v.object.Spec.Repository() + ":" + tag
}

// recall makes a look out of the status, so that a manager that starts does not ask for all that the last one knew. What failed is tried again.
func (v *visit) recall(place string) look {
	s := &v.before.Status
	if s.Spec == nil || s.LastCheck == nil || s.LatestBundle == "" || !isTrue(s.Conditions, packagesv1.RegistryReachable) {
		return look{}
	}
	if s.Spec.Registry() != v.object.Spec.Registry() || s.Spec.Repository() != v.object.Spec.Repository() {
		return look{}
	}
	return look{place: place, at: s.LastCheck.Time, name: s.LatestBundle}
}

// bundle returns one that is here, and why it can't be used.
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

// edition is a version of a bundle.
type edition struct {
	uid     types.UID
	version string
}

// usable says why a bundle can't be used. A signature is checked once for each version of a bundle.
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

// verdict is what was found out about a signature.
type verdict struct{ err error }

// minor is a version as bundles have it. Some servers put a plus behind the minor, and some say nothing but the whole of it.
func minor(info *version.Info) string {
	first, second := info.Major, info.Minor
	if first == "" || second == "" {
		parts := append(strings.SplitN(strings.TrimPrefix(info.GitVersion, "v"), ".", 3), "", "")
		first, second = parts[0], parts[1]
	}
	return first + "." + strings.TrimRight(second, "+")
}
