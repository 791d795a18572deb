// Package index finds HelmReleaseProxies by HelmChartProxy and by Cluster. With a cache it reads
// only those that it returns.
//
// Lists share their objects with the cache: copy one before you modify it. Start with Add and
// Releases.
package index

import (
	"context"
	"fmt"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/util/labels/format"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// Names of the indexes.
const (
	byChart   = "drover.helmchartproxy"
	byCluster = "drover.cluster"
)

// Add adds the indexes to a cache. Call it once, before the cache starts.
func Add(ctx context.Context, fields ctrlclient.FieldIndexer) error {
	for name, keys := range map[string]ctrlclient.IndexerFunc{byChart: chartKeys, byCluster: clusterKeys} {
		if err := fields.IndexField(ctx, &addonsv1.HelmReleaseProxy{}, name, keys); err != nil {
			return fmt.Errorf("adding index %q: %w", name, err)
		}
	}
	return nil
}

func chartKeys(o ctrlclient.Object) []string {
	if chart := o.GetLabels()[addonsv1.HelmChartProxyLabel]; chart != "" {
		return []string{chart}
	}
	return nil
}

func clusterKeys(o ctrlclient.Object) []string {
	hrp, ok := o.(*addonsv1.HelmReleaseProxy)
	if !ok {
		return nil
	}
	return []string{ClusterKey(hrp).String()}
}

// ClusterKey returns the name of the Cluster of a release.
func ClusterKey(hrp *addonsv1.HelmReleaseProxy) ctrlclient.ObjectKey {
	key := ctrlclient.ObjectKey{Namespace: hrp.Spec.ClusterRef.Namespace, Name: hrp.Spec.ClusterRef.Name}
	if key.Namespace == "" {
		key.Namespace = hrp.Namespace
	}
	return key
}

// Effective reports whether a release may affect others on its Cluster: it is in the namespace of
// the Cluster, or it was permitted to install something there. Anybody can create one that refers
// to the Cluster of somebody else.
func Effective(hrp *addonsv1.HelmReleaseProxy) bool {
	return ClusterKey(hrp).Namespace == hrp.Namespace || hrp.Status.Applied != nil
}

// ChartLabel returns the value of the label that names a HelmChartProxy, whose name can be longer
// than a label.
func ChartLabel(name string) string { return format.MustFormatValue(name) }

// Releases finds HelmReleaseProxies.
type Releases struct {
	ctrlclient.Reader

	// Indexed reports that the reader is a cache with the indexes. Without them the same results
	// take longer.
	Indexed bool
}

// OfChart lists the releases of a HelmChartProxy.
func (r Releases) OfChart(ctx context.Context, chart ctrlclient.ObjectKey) ([]addonsv1.HelmReleaseProxy, error) {
	list := &addonsv1.HelmReleaseProxyList{}
	var by ctrlclient.ListOption = ctrlclient.MatchingLabels{addonsv1.HelmChartProxyLabel: ChartLabel(chart.Name)}
	if r.Indexed {
		by = ctrlclient.MatchingFields{byChart: ChartLabel(chart.Name)}
	}
	if err := r.List(ctx, list, ctrlclient.InNamespace(chart.Namespace), by, ctrlclient.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing releases of HelmChartProxy %q: %w", chart, err)
	}
	return list.Items, nil
}

// OfCluster lists the releases on a Cluster, in all namespaces and of any owner.
func (r Releases) OfCluster(ctx context.Context, cluster ctrlclient.ObjectKey) ([]addonsv1.HelmReleaseProxy, error) {
	list := &addonsv1.HelmReleaseProxyList{}
	options := []ctrlclient.ListOption{ctrlclient.UnsafeDisableDeepCopy}
	if r.Indexed {
		options = append(options, ctrlclient.MatchingFields{byCluster: cluster.String()})
	}
	if err := r.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing releases on cluster %q: %w", cluster, err)
	}
	if r.Indexed {
		return list.Items, nil
	}
	var out []addonsv1.HelmReleaseProxy
	for _, hrp := range list.Items {
		if ClusterKey(&hrp) == cluster {
			out = append(out, hrp)
		}
	}
	return out, nil
}
