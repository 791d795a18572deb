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

// capabilitiesOf returns the capabilities of a cluster for templates, from the cache of its
// connection.
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

// versionSet returns every group version and every kind.
func versionSet(d discovery.DiscoveryInterface) (common.VersionSet, error) {
	groups, resources, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // an unavailable API service hides only its own kinds
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

// lookup lets templates read objects through the connection to the cluster.
type lookup struct {
	cluster *workload.Cluster

	mu sync.Mutex
	// failed is the error of a read, which is not a mistake of the chart.
	failed error
}

// GetClientFor returns a client for a kind, and whether the kind is namespaced.
func (l *lookup) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := l.cluster.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, false, l.record(err)
	}
	client := l.cluster.Dynamic().Resource(mapping.Resource)
	return &recordingResource{NamespaceableResourceInterface: client, record: l.record}, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (l *lookup) record(err error) error {
	if err != nil && !apierrors.IsNotFound(err) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = err
	}
	return err
}

// recordingResource records errors of reads by templates.
type recordingResource struct {
	dynamic.NamespaceableResourceInterface
	record func(error) error
}

func (l *recordingResource) Namespace(namespace string) dynamic.ResourceInterface {
	return &recordingNamespace{ResourceInterface: l.NamespaceableResourceInterface.Namespace(namespace), record: l.record}
}

func (l *recordingResource) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	obj, err := l.NamespaceableResourceInterface.Get(ctx, name, o, sub...)
	return obj, l.record(err)
}

func (l *recordingResource) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := l.NamespaceableResourceInterface.List(ctx, o)
	return list, l.record(err)
}

type recordingNamespace struct {
	dynamic.ResourceInterface
	record func(error) error
}

func (l *recordingNamespace) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	obj, err := l.ResourceInterface.Get(ctx, name, o, sub...)
	return obj, l.record(err)
}

func (l *recordingNamespace) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := l.ResourceInterface.List(ctx, o)
	return list, l.record(err)
}
