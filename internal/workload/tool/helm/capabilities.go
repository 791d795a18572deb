package helm

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"helm.sh/helm/v4/pkg/chart/common"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/drover-dev/drover/internal/workload"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// capabilitiesOf tells templates what a cluster can do, from what its connection knows already.
func capabilitiesOf(cluster *workload.Cluster) (*common.Capabilities, error) {
	info, err := cluster.Version()
	if err != nil {
		return nil, fmt.Errorf("getting the Kubernetes version: %w", err)
	}
	version, err := common.ParseKubeVersion(info.GitVersion)
	if err != nil {
		return nil, fmt.Errorf("parsing Kubernetes version %q: %w", info.GitVersion, err)
	}
	kinds, err := versionSet(cluster.Discovery())
	if err != nil {
		return nil, err
	}
	return &common.Capabilities{KubeVersion: *version, APIVersions: kinds, HelmVersion: common.DefaultCapabilities.HelmVersion}, nil
}

// versionSet has every group and version, and every kind of them.
func versionSet(d discovery.DiscoveryInterface) (common.VersionSet, error) {
	groups, resources, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // an API service that is down hides its own kinds only
		return nil, fmt.Errorf("discovering kinds: %w", err)
	}
	set := map[string]bool{}
	for _, group := range groups {
		for _, version := range group.Versions {
			set[version.GroupVersion] = true
		}
	}
	for _, list := range resources {
		set[list.GroupVersion] = true
		for _, r := range list.APIResources {
			set[path.Join(list.GroupVersion, r.Kind)] = true
		}
	}
	return common.VersionSet(sortedKeys(set)), nil
}

// lookup lets templates look at the cluster, with the clients of its connection.
type lookup struct {
	cluster *workload.Cluster

	mu sync.Mutex
	// failed is why a look failed, for that is no mistake of the chart's.
	failed error
}

// GetClientFor returns a client for a kind, and whether its objects are in namespaces.
func (l *lookup) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := l.cluster.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, false, l.note(err)
	}
	client := l.cluster.Dynamic().Resource(mapping.Resource)
	return &looking{NamespaceableResourceInterface: client, note: l.note}, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (l *lookup) note(err error) error {
	if err != nil && !apierrors.IsNotFound(err) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = err
	}
	return err
}

// looking notes failures of the reads that templates can make.
type looking struct {
	dynamic.NamespaceableResourceInterface
	note func(error) error
}

func (l *looking) Namespace(namespace string) dynamic.ResourceInterface {
	return &lookingInto{ResourceInterface: l.NamespaceableResourceInterface.Namespace(namespace), note: l.note}
}

func (l *looking) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	obj, err := l.NamespaceableResourceInterface.Get(ctx, name, o, sub...)
	return obj, l.note(err)
}

func (l *looking) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := l.NamespaceableResourceInterface.List(ctx, o)
	return list, l.note(err)
}

type lookingInto struct {
	dynamic.ResourceInterface
	note func(error) error
}

func (l *lookingInto) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	obj, err := l.ResourceInterface.Get(ctx, name, o, sub...)
	return obj, l.note(err)
}

func (l *lookingInto) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := l.ResourceInterface.List(ctx, o)
	return list, l.note(err)
}
