package web

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/gitops"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// byCluster is the index of objects by the namespace and name of their cluster.
const byCluster = "cluster"

// kind is a kind of objects that a View watches.
type kind struct {
	name string
	// object and list create empty values.
	object func() client.Object
	list   func() client.ObjectList
	// cluster returns the name of the cluster that an object belongs to, or "".
	cluster func(client.Object) string
	// aside means that objects of the kind are not part of what a cluster consists of.
	aside bool
}

// newKind returns the kind of O, whose lists are L.
func newKind[O, L any, PO interface {
	*O
	client.Object
}, PL interface {
	*L
	client.ObjectList
}](name string, cluster func(client.Object) string) kind {
	return kind{
		name: name, cluster: cluster,
		object: func() client.Object { return PO(new(O)) },
		list:   func() client.ObjectList { return PL(new(L)) },
	}
}

// Names of kinds.
const (
	kindClusters     = "clusters"
	kindCAPI         = "Cluster API clusters"
	kindInfra        = "PacketClusters"
	kindControlPlane = "control planes"
	kindEtcd         = "etcd"
	kindWorkers      = "worker groups"
	kindMachines     = "machines"
	kindDevices      = "PacketMachines"
	kindBootstraps   = "KubeadmConfigs"
	kindReleases     = "releases"
	kindAddOns       = "add-ons"
	kindPackages     = "packages"
	kindFluxConfigs  = "FluxConfigs"
	kindGitChanges   = "changes in Git"
	kindApplied      = "Kustomizations"
)

func kinds() []kind {
	return []kind{
		newKind[anywherev1.Cluster, anywherev1.ClusterList](kindClusters, client.Object.GetName),
		newKind[clusterv1.Cluster, clusterv1.ClusterList](kindCAPI, client.Object.GetName),
		newKind[infrav1.PacketCluster, infrav1.PacketClusterList](kindInfra, labeled),
		newKind[controlplanev1.KubeadmControlPlane, controlplanev1.KubeadmControlPlaneList](kindControlPlane, labeled),
		newKind[etcdv1.EtcdadmCluster, etcdv1.EtcdadmClusterList](kindEtcd, labeled),
		newKind[clusterv1.MachineDeployment, clusterv1.MachineDeploymentList](kindWorkers, labeled),
		newKind[clusterv1.Machine, clusterv1.MachineList](kindMachines, labeled),
		newKind[infrav1.PacketMachine, infrav1.PacketMachineList](kindDevices, labeled),
		newKind[bootstrapv1.KubeadmConfig, bootstrapv1.KubeadmConfigList](kindBootstraps, labeled),
		newKind[addonsv1.HelmReleaseProxy, addonsv1.HelmReleaseProxyList](kindReleases, labeled),
		newKind[addonsv1.HelmChartProxy, addonsv1.HelmChartProxyList](kindAddOns, func(client.Object) string { return "" }),
		newKind[packagesv1.Package, packagesv1.PackageList](kindPackages, packageCluster),
		aside(newKind[anywherev1.FluxConfig, anywherev1.FluxConfigList](kindFluxConfigs, func(client.Object) string { return "" })),
		aside(newKind[droverv1.GitChange, droverv1.GitChangeList](kindGitChanges, changedCluster)),
		appliedKind(),
	}
}

func aside(k kind) kind {
	k.aside = true
	return k
}

// appliedKind is the kind of what Flux has applied, which has no Go type here.
func appliedKind() kind {
	return kind{
		name: kindApplied, aside: true,
		cluster: func(o client.Object) string { return o.GetLabels()[anywherev1.GitClusterLabel] },
		object: func() client.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gitops.Kustomizations)
			return u
		},
		list: func() client.ObjectList {
			u := &unstructured.UnstructuredList{}
			u.SetGroupVersionKind(gitops.Kustomizations)
			return u
		},
	}
}

// changedCluster returns the cluster that a GitChange is about.
func changedCluster(o client.Object) string {
	if g, ok := o.(*droverv1.GitChange); ok {
		return g.Spec.Cluster
	}
	return ""
}

func labeled(o client.Object) string { return o.GetLabels()[clusterv1.ClusterNameLabel] }

// packageCluster returns the cluster of a Package: the one that the controller found, or the one
// that the namespace is for.
func packageCluster(o client.Object) string {
	if p, ok := o.(*packagesv1.Package); ok && p.Status.Target != nil {
		return p.Status.Target.Cluster
	}
	name, _ := strings.CutPrefix(o.GetNamespace(), packagesv1.NamespacePrefix)
	if name == o.GetNamespace() {
		return ""
	}
	return name
}

// store caches the objects of one kind, from all namespaces or from those that the user may read.
type store struct {
	kind kind

	mu    sync.RWMutex
	parts map[string]*part // by namespace, "" for all
}

// part is the objects of a kind from a namespace, or from all.
type part struct {
	informer toolscache.SharedIndexInformer
	// denied is since when the plane denies the user the objects. They are hidden if that lasts.
	denied time.Time
	hidden bool
}

// of returns the objects of a cluster. An empty namespace matches all.
func of[T client.Object](s *store, namespace, cluster string) []T {
	var out []T
	for _, informer := range s.all() {
		found, err := informer.GetIndexer().ByIndex(byCluster, cluster)
		if err != nil {
			panic(err) // the index exists
		}
		for _, o := range found {
			if one, ok := o.(T); ok && (namespace == "" || one.GetNamespace() == namespace) {
				out = append(out, one)
			}
		}
	}
	return out
}

// list returns all objects, sorted by namespace and name.
func list[T client.Object](s *store) []T {
	var out []T
	for _, informer := range s.all() {
		for _, o := range informer.GetStore().List() {
			if one, ok := o.(T); ok {
				out = append(out, one)
			}
		}
	}
	slices.SortFunc(out, func(a, b T) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out
}

// all returns the informers of what the user may read.
func (s *store) all() []toolscache.SharedIndexInformer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]toolscache.SharedIndexInformer, 0, len(s.parts))
	for _, p := range s.parts {
		if !p.hidden {
			out = append(out, p.informer)
		}
	}
	return out
}

// hidden reports whether the user may read no objects of the kind.
func (s *store) hidden() bool { return len(s.all()) == 0 }

// namespaces returns the namespaces that the user may read, "" for all.
func (s *store) namespaces() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []string
	for namespace, p := range s.parts {
		if !p.hidden {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return out
}

func (s *store) add(namespace string, informer toolscache.SharedIndexInformer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[namespace] = &part{informer: informer}
}

// deny hides what the plane has denied the user for a while. It returns the objects that it has
// hidden. A plane that starts denies everything until it has read its roles, which hides nothing.
func (s *store) deny(namespace string, now time.Time) (hidden []any, lasts bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[namespace]
	switch {
	case p == nil:
		return nil, false
	case p.denied.IsZero():
		p.denied = now
		return nil, false
	case now.Sub(p.denied) < denialGrace:
		return nil, false
	case p.hidden:
		return nil, true
	}
	p.hidden = true
	return p.informer.GetStore().List(), true
}

// allow shows again what was hidden, and returns these objects.
func (s *store) allow(namespace string) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[namespace]
	if p == nil {
		return nil
	}
	was := p.hidden
	p.denied, p.hidden = time.Time{}, false
	if !was {
		return nil
	}
	return p.informer.GetStore().List()
}

// denialGrace is how long a plane may deny what it allowed before.
const denialGrace = 10 * time.Second

// readable returns the namespaces from which the user may list a kind: all as "", or those of the
// candidates that the API server allows. It returns none for a kind that the plane doesn't serve.
func readable(ctx context.Context, c client.Client, k kind, candidates []string) ([]string, error) {
	var out []string
	for _, namespace := range append([]string{""}, candidates...) {
		err := c.List(ctx, k.list(), client.InNamespace(namespace), client.Limit(1))
		switch {
		case err == nil && namespace == "":
			return []string{""}, nil
		case err == nil:
			out = append(out, namespace)
		case meta.IsNoMatchError(err):
			return nil, nil
		case !apierrors.IsForbidden(err):
			return nil, err
		}
	}
	return out, nil
}

// newInformer returns an informer of a kind in a namespace. It calls reached whenever the plane
// answers a request.
func newInformer(c client.WithWatch, k kind, namespace string, reached func()) toolscache.SharedIndexInformer {
	lw := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := k.list()
			err := c.List(ctx, list, &client.ListOptions{Namespace: namespace, Raw: &options})
			if err == nil {
				reached()
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := c.Watch(ctx, k.list(), &client.ListOptions{Namespace: namespace, Raw: &options})
			if err == nil {
				reached()
			}
			return events, err
		},
	}
	informer := toolscache.NewSharedIndexInformer(toolscache.ToListWatcherWithWatchListSemantics(lw, c), k.object(), 0, toolscache.Indexers{
		byCluster: func(o any) ([]string, error) {
			if name := k.cluster(o.(client.Object)); name != "" { // informers hold objects
				return []string{name}, nil
			}
			return nil, nil
		},
	})
	_ = informer.SetTransform(slim) // it is not started yet
	return informer
}

// keepSpecChange removes managed fields, but for when the spec was changed last.
func keepSpecChange(o client.Object) {
	changed := inspect.SpecChanged(o)
	o.SetManagedFields(nil)
	switch o.(type) {
	case *anywherev1.Cluster, *clusterv1.Cluster, *controlplanev1.KubeadmControlPlane, *clusterv1.MachineDeployment:
		if !changed.IsZero() {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{{Time: &changed, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}})
		}
	}
}

// slim removes what the page doesn't show, which is most of an object.
func slim(o any) (any, error) {
	if object, ok := o.(client.Object); ok {
		keepSpecChange(object)
	}
	switch object := o.(type) {
	case *bootstrapv1.KubeadmConfig:
		object.Spec = bootstrapv1.KubeadmConfigSpec{}
	case *droverv1.GitChange:
		object.Spec.Objects = nil
	}
	return o, nil
}
