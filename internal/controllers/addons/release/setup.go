package release

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/predicates"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/operation"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// Indexes over HelmReleaseProxies.
const (
	byCluster = "addons.cluster"
	byRelease = "addons.release"
	bySource  = "addons.source"
)

func releaseKey(r *addonsv1.HelmReleaseProxy) string {
	namespace := r.Spec.ReleaseNamespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if r.Spec.ReleaseName == "" {
		return ""
	}
	return clusterKey(r) + " " + namespace + "/" + r.Spec.ReleaseName
}

func clusterKey(r *addonsv1.HelmReleaseProxy) string {
	namespace := r.Spec.ClusterRef.Namespace
	if namespace == "" {
		namespace = r.Namespace
	}
	return client.ObjectKey{Namespace: namespace, Name: r.Spec.ClusterRef.Name}.String()
}

// SetupWithManager adds the controller, its indexes and its watches.
func (c *Controller) SetupWithManager(ctx context.Context, mgr ctrl.Manager, connections Connections, o controller.Options) error {
	for name, index := range map[string]client.IndexerFunc{
		byCluster: singleKey(clusterKey), byRelease: singleKey(releaseKey), bySource: sourceKeys,
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, &addonsv1.HelmReleaseProxy{}, name, index); err != nil {
			return fmt.Errorf("indexing by %q: %w", name, err)
		}
	}
	c.start(ctx)
	b := ctrl.NewControllerManagedBy(mgr).
		Named("helmreleaseproxy").
		For(&addonsv1.HelmReleaseProxy{}, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{},
		))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(c.ofCluster), builder.WithPredicates(clusterChanged())).
		Watches(&addonsv1.HelmReleaseProxy{}, handler.EnqueueRequestsFromMapFunc(c.siblings), builder.WithPredicates(readinessChanged())).
		WatchesRawSource(connections.Clusters.GetClusterSource("helmreleaseproxy", c.ofCluster)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			c.queue.Store(&q)
			return nil
		})).
		WithEventFilter(predicates.ResourceHasFilterLabel(mgr.GetScheme(), mgr.GetLogger(), c.WatchFilter)).
		WithOptions(reconcile.NewGuard(mgr, "HelmReleaseProxy").Options(o))
	for _, kind := range []string{"ConfigMap", "Secret"} {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		b = b.WatchesRawSource(source.Kind(connections.Metadata, client.Object(meta), handler.EnqueueRequestsFromMapFunc(c.ofSource(kind))))
	}
	return b.Complete(c)
}

// Connections are what the controller needs of Cluster API's wiring.
type Connections struct {
	// Clusters reports when a cluster is connected and disconnected.
	Clusters interface {
		GetClusterSource(name string, to func(context.Context, client.Object) []ctrlreconcile.Request, o ...clustercache.GetClusterSourceOption) source.Source
	}
	// Metadata watches the metadata of all ConfigMaps and Secrets.
	Metadata cache.Cache
}

// start prepares what runs outside the workers. It ends with ctx.
func (c *Controller) start(ctx context.Context) {
	c.operations = operation.New(ctx, c.Limits, c.enqueue)
	c.resolutions = &resolutions{
		resolver: c.Packages, clock: c.Clock, every: c.ResolveEvery, enqueue: c.enqueue, stop: ctx, known: map[string]*resolution{},
	}
}

// enqueue reconciles a HelmReleaseProxy.
func (c *Controller) enqueue(key client.ObjectKey) {
	if q := c.queue.Load(); q != nil {
		(*q).Add(ctrlreconcile.Request{NamespacedName: key})
	}
}

// HandleEvent handles a change on a cluster.
func (c *Controller) HandleEvent(e workload.Event) {
	ctx := context.Background() // reads only from a cache
	if e.Object == nil {
		// Changes from before the watch started cause no events.
		for _, r := range c.list(ctx, byCluster, e.Cluster.String()) {
			c.memory.markChanged(client.ObjectKeyFromObject(&r), false)
			c.enqueue(client.ObjectKeyFromObject(&r))
		}
		return
	}
	name, namespace, record := releaseOf(e)
	if name == "" {
		return
	}
	for _, r := range c.list(ctx, byRelease, e.Cluster.String()+" "+namespace+"/"+name) {
		key := client.ObjectKeyFromObject(&r)
		if record && !c.operating(key) || !record && c.memory.markChanged(key, e.StatusOnly) {
			c.enqueue(key)
		}
	}
}

// operating reports whether an operation runs for a release. It changes the record of the release,
// and reports when it ends.
func (c *Controller) operating(key client.ObjectKey) bool {
	subject, _ := c.operations.Running(key)
	return subject != ""
}

// releaseOf returns the release that an object belongs to, and whether the object is its record.
func releaseOf(e workload.Event) (name, namespace string, record bool) {
	if e.Object.Labels["owner"] == "helm" {
		return e.Object.Labels["name"], e.Object.Namespace, true
	}
	if e.Object.Labels[tool.OwnerLabel] == tool.OwnerDrover {
		if name := e.Object.Labels[tool.NameLabel]; name != "" {
			return name, e.Object.Namespace, true
		}
		return e.Object.Annotations[tool.NameAnnotation], e.Object.Annotations[tool.NamespaceAnnotation], false
	}
	return e.Object.Annotations["meta.helm.sh/release-name"], e.Object.Annotations["meta.helm.sh/release-namespace"], false
}

// list returns the HelmReleaseProxies of an index. They belong to the cache and must not be
// modified.
func (c *Controller) list(ctx context.Context, index, value string) []addonsv1.HelmReleaseProxy {
	found := &addonsv1.HelmReleaseProxyList{}
	if err := c.Client.List(ctx, found, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is stopped
	}
	return found.Items
}

func (c *Controller) ofCluster(ctx context.Context, cluster client.Object) []ctrlreconcile.Request {
	return requests(c.list(ctx, byCluster, client.ObjectKeyFromObject(cluster).String()))
}

func (c *Controller) ofSource(kind string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrlreconcile.Request {
		return requests(c.list(ctx, bySource, kind+"/"+client.ObjectKeyFromObject(o).String()))
	}
}

// siblings returns releases on the same cluster that depend on others or claim the same release.
func (c *Controller) siblings(ctx context.Context, o client.Object) []ctrlreconcile.Request {
	r, ok := o.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return nil
	}
	var out []addonsv1.HelmReleaseProxy
	for _, other := range c.list(ctx, byCluster, clusterKey(r)) {
		if other.UID != r.UID && (len(other.Spec.DependsOn) > 0 || releaseKey(&other) == releaseKey(r)) {
			out = append(out, other)
		}
	}
	return requests(out)
}

func requests(releases []addonsv1.HelmReleaseProxy) []ctrlreconcile.Request {
	out := make([]ctrlreconcile.Request, 0, len(releases))
	for i := range releases {
		out = append(out, ctrlreconcile.Request{NamespacedName: client.ObjectKeyFromObject(&releases[i])})
	}
	return out
}

func singleKey(key func(*addonsv1.HelmReleaseProxy) string) client.IndexerFunc {
	return func(o client.Object) []string {
		if r, ok := o.(*addonsv1.HelmReleaseProxy); ok {
			return []string{key(r)}
		}
		return nil
	}
}

// sourceKeys returns the ConfigMaps and Secrets that a release refers to.
func sourceKeys(o client.Object) []string {
	r, ok := o.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return nil
	}
	var keys []string
	add := func(kind, namespace, name string) {
		if namespace == "" {
			namespace = r.Namespace
		}
		keys = append(keys, kind+"/"+namespace+"/"+name)
	}
	for _, from := range r.Spec.ValuesFrom {
		add(from.Kind, "", from.Name)
	}
	if c := r.Spec.Credentials; c != nil {
		add("Secret", c.Secret.Namespace, c.Secret.Name)
	}
	if t := r.Spec.TLSConfig; t != nil && t.CASecretRef != nil {
		add("Secret", t.CASecretRef.Namespace, t.CASecretRef.Name)
	}
	if r.Spec.Verify != nil {
		add("Secret", "", r.Spec.Verify.SecretRef.Name)
	}
	return keys
}

// clusterChanged passes changes that matter: paused, initialized, deleted.
func clusterChanged() predicate.Predicate {
	state := func(o client.Object) [3]bool {
		c, ok := o.(*clusterv1.Cluster)
		if !ok {
			return [3]bool{}
		}
		initialized := c.Status.Initialization.ControlPlaneInitialized
		return [3]bool{isPaused(c), initialized == nil || *initialized, !c.DeletionTimestamp.IsZero()}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return state(e.ObjectOld) != state(e.ObjectNew) }}
}

// readinessChanged passes changes that others may wait for.
func readinessChanged() predicate.Predicate {
	state := func(o client.Object) bool {
		r, ok := o.(*addonsv1.HelmReleaseProxy)
		return ok && upToDate(r)
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return state(e.ObjectOld) != state(e.ObjectNew) }}
}
