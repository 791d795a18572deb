package chart

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// find lists the clusters and the releases.
func (c *Controller) find(ctx context.Context, s *scope) error {
	all, err := c.releases().OfChart(ctx, s.key())
	if err != nil {
		return err
	}
	s.releases = map[string][]*addonsv1.HelmReleaseProxy{}
	for i := range all {
		cluster := all[i].Spec.ClusterRef.Name
		s.releases[cluster] = append(s.releases[cluster], &all[i])
	}
	if s.deleting() {
		return nil // which clusters there are does not matter then
	}
	selector, err := metav1.LabelSelectorAsSelector(&s.chart.Spec.ClusterSelector)
	if err != nil {
		return reconcile.TerminalError(s.unselected(fmt.Errorf("reading spec.clusterSelector: %w", err)))
	}
	if s.clusters, err = c.matching(ctx, s.chart.Namespace, selector); err != nil {
		return s.unselected(err)
	}
	return nil
}

// unselected leaves everything as it is.
func (s *scope) unselected(err error) error {
	s.unselectable = err
	for _, releases := range s.releases {
		for _, r := range releases {
			s.leaves(r)
		}
	}
	return err
}

// matching are the clusters that a selector chooses, by name: a list from a cache has no order.
func (c *Controller) matching(ctx context.Context, namespace string, selector labels.Selector) ([]*clusterv1.Cluster, error) {
	list := &clusterv1.ClusterList{}
	err := c.Client.List(ctx, list, ctrlclient.InNamespace(namespace), ctrlclient.MatchingLabelsSelector{Selector: selector},
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

// choose finds the release of each cluster and leaves out those that nothing is done for.
func (c *Controller) choose(_ context.Context, s *scope) error {
	for _, cluster := range s.clusters {
		t := &target{cluster: cluster}
		there := s.releases[cluster.Name]
		for _, r := range there {
			if len(there) > 1 {
				s.leaves(r)
			}
		}
		switch {
		case len(there) > 1:
			t.skip = true
			s.note(problem{cluster.Name, addonsv1.CreationFailedReason, twice(there), true})
		case len(there) == 1:
			t.release = there[0]
		}
		if annotations.IsPaused(cluster, cluster) || !cluster.DeletionTimestamp.IsZero() {
			t.skip = true
		}
		if t.skip && t.release != nil {
			s.leaves(t.release)
		}
		s.targets = append(s.targets, t)
	}
	return nil
}

// twice happens when objects were copied between management clusters. Which one is right only a person knows.
func twice(there []*addonsv1.HelmReleaseProxy) error {
	slices.SortFunc(there, func(a, b *addonsv1.HelmReleaseProxy) int { return cmp.Compare(a.Name, b.Name) })
	return fmt.Errorf("there are %d HelmReleaseProxies, %q and %q among them: delete all but one", len(there), there[0].Name, there[1].Name)
}
