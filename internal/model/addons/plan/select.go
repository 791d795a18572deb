// Package plan says what a HelmChartProxy changes: which clusters it selects, which releases exist
// on them, and how each of those has to change.
//
// It reads the management cluster and writes nothing, so that the controller acts on the same plan
// that a command shows. Start with Decide, the choice for one cluster, and Predict, the choice for
// all of them.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/index"
)

// SelectorError reports an invalid spec.clusterSelector. Only the user can fix it.
type SelectorError struct{ Err error }

func (e *SelectorError) Error() string { return "reading spec.clusterSelector: " + e.Err.Error() }

func (e *SelectorError) Unwrap() error { return e.Err }

// Clusters lists the clusters that a HelmChartProxy selects, sorted by name. They are shared with
// the reader's cache.
func Clusters(ctx context.Context, reader ctrlclient.Reader, chart *addonsv1.HelmChartProxy) ([]*clusterv1.Cluster, error) {
	selector, err := metav1.LabelSelectorAsSelector(&chart.Spec.ClusterSelector)
	if err != nil {
		return nil, &SelectorError{err}
	}
	list := &clusterv1.ClusterList{}
	err = reader.List(ctx, list, ctrlclient.InNamespace(chart.Namespace), ctrlclient.MatchingLabelsSelector{Selector: selector},
		ctrlclient.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	out := make([]*clusterv1.Cluster, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	slices.SortFunc(out, func(a, b *clusterv1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Releases lists the releases of a HelmChartProxy by the name of their cluster. They are shared
// with the reader's cache.
func Releases(ctx context.Context, reader index.Releases, chart ctrlclient.ObjectKey) (map[string][]*addonsv1.HelmReleaseProxy, error) {
	all, err := reader.OfChart(ctx, chart)
	if err != nil {
		return nil, err
	}
	out := map[string][]*addonsv1.HelmReleaseProxy{}
	for i := range all {
		cluster := all[i].Spec.ClusterRef.Name
		out[cluster] = append(out[cluster], &all[i])
	}
	return out, nil
}

// Duplicates returns an error if a cluster has more than one release of a HelmChartProxy, which
// happens when objects were copied between management clusters. Only the user knows which one to
// keep.
func Duplicates(releases []*addonsv1.HelmReleaseProxy) error {
	if len(releases) < 2 {
		return nil
	}
	names := make([]string, 0, len(releases))
	for _, r := range releases {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return fmt.Errorf("found %d HelmReleaseProxies, including %q and %q; delete all but one", len(names), names[0], names[1])
}

// Excluded reports whether nothing may change on a cluster, because it is paused or being deleted.
func Excluded(cluster *clusterv1.Cluster) bool {
	return annotations.IsPaused(cluster, cluster) || !cluster.DeletionTimestamp.IsZero()
}

// Retained reports whether a release stays although its cluster isn't selected: the cluster is
// paused, or the release was only to be installed once. It reads the cluster with live, an uncached
// reader, because an uninstall can't be undone and a cache can show the release before its cluster
// after a move between management clusters.
func Retained(ctx context.Context, live ctrlclient.Reader, chart *addonsv1.HelmChartProxy, r *addonsv1.HelmReleaseProxy) (bool, error) {
	cluster := &clusterv1.Cluster{}
	err := live.Get(ctx, ctrlclient.ObjectKey{Namespace: chart.Namespace, Name: r.Spec.ClusterRef.Name}, cluster)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("reading cluster %q: %w", r.Spec.ClusterRef.Name, err)
	}
	return chart.Spec.ReconcileStrategy == addonsv1.InstallOnce || annotations.IsPaused(cluster, cluster) || selects(chart, cluster), nil
}

// selects reports whether a cluster is selected after all, because the cache was behind.
func selects(chart *addonsv1.HelmChartProxy, cluster *clusterv1.Cluster) bool {
	selector, err := metav1.LabelSelectorAsSelector(&chart.Spec.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(cluster.Labels))
}
