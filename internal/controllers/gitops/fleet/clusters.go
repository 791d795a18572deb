package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
	"github.com/drover-dev/drover/internal/model/removal"
)

// candidate is a cluster that is in the repository, or was.
type candidate struct {
	key client.ObjectKey
	// entry is nil if the repository doesn't have the cluster in a form that can be applied.
	entry *entry
	// own is the Kustomization of the cluster itself, or nil; all are those of its directories, too.
	own *kustomizev1.Kustomization
	all []kustomizev1.Kustomization
	// cluster is nil if it doesn't exist.
	cluster *anywherev1.Cluster
	// removing means that a GitChange removes the cluster. It is known for confirmed removals only.
	removing bool
}

// applyClusters does what is to be done for each cluster. A failure of one doesn't hold back
// others.
func (c *Controller) applyClusters(ctx context.Context, s *scope) error {
	candidates, err := c.candidates(ctx, s)
	if err != nil {
		return err
	}
	var failed error
	for _, one := range candidates {
		if err := c.applyCluster(ctx, s, one); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cluster %q: %w", one.key, err))
		}
	}
	return errors.Join(failed, c.pruneExternalArtifacts(ctx, client.ObjectKeyFromObject(s.repository)))
}

// candidates returns the clusters of the repository and those that have a Kustomization, sorted.
func (c *Controller) candidates(ctx context.Context, s *scope) ([]*candidate, error) {
	all := map[client.ObjectKey]*candidate{}
	of := func(key client.ObjectKey) *candidate {
		if all[key] == nil {
			all[key] = &candidate{key: key}
		}
		return all[key]
	}
	for _, e := range c.entries(s) {
		of(e.key).entry = e
	}
	existing := &kustomizev1.KustomizationList{}
	if err := c.Client.List(ctx, existing, client.HasLabels{anywherev1.GitClusterLabel}); err != nil {
		return nil, fmt.Errorf("listing Kustomizations: %w", err)
	}
	for key, group := range groups(existing.Items, client.ObjectKeyFromObject(s.repository)) {
		of(key).own, of(key).all = group.own, group.all
	}
	sorted := make([]*candidate, 0, len(all))
	for _, one := range all {
		if err := c.observe(ctx, s, one); err != nil {
			return nil, err
		}
		sorted = append(sorted, one)
	}
	slices.SortFunc(sorted, func(a, b *candidate) int { return strings.Compare(a.key.String(), b.key.String()) })
	return sorted, nil
}

// observe reads the Cluster of a candidate.
func (c *Controller) observe(ctx context.Context, s *scope, one *candidate) error {
	cluster := &anywherev1.Cluster{}
	err := c.Client.Get(ctx, one.key, cluster)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Cluster %q: %w", one.key, err)
	}
	one.cluster = cluster
	if removal.IsConfirmed(cluster) {
		one.removing, err = c.isRemoving(ctx, s, one.key)
	}
	return err
}

// isRemoving reports whether a GitChange removes a cluster, and Flux may not have fetched its
// commit. Whoever creates the GitChange confirms the removal after the commit, so that the cache
// has the GitChange by then: it was committed from there.
func (c *Controller) isRemoving(ctx context.Context, s *scope, key client.ObjectKey) (bool, error) {
	all := &droverv1.GitChangeList{}
	if err := c.Client.List(ctx, all, client.InNamespace(key.Namespace)); err != nil {
		return false, fmt.Errorf("listing GitChanges: %w", err)
	}
	return slices.ContainsFunc(all.Items, func(change droverv1.GitChange) bool {
		return isRemoval(&change) && change.Spec.Cluster == key.Name &&
			!progress.IsFinished(&change) && !progress.IsFetched(&change, s.repository)
	}), nil
}

func isRemoval(change *droverv1.GitChange) bool { return change.Spec.Action == droverv1.GitRemove }

// entries returns the clusters of the repository that can be applied, and reports the others.
func (c *Controller) entries(s *scope) []*entry {
	var all []*entry
	for _, m := range s.members {
		t := s.trees[m.path]
		for i := range t.clusters {
			switch e := &t.clusters[i]; {
			case e.problem == "" && e.key.Namespace == m.config.Namespace:
				all = append(all, e)
			case e.problem == "" && !s.isOpen(e.key.Namespace, m.path):
				c.announce(s, s.repository, notConnectedReason, fmt.Sprintf(
					"%s has a cluster for namespace %q, which has no FluxConfig for this repository and path that is connected", e.dir, e.key.Namespace))
			}
		}
		s.reports[m.config].Problems = append(s.reports[m.config].Problems, t.messages(m)...)
	}
	return all
}

// messages returns the problems of a tree that concern a member: those of its namespace, and those
// whose namespace isn't known.
func (t *tree) messages(m member) []string {
	var all []string
	if t.missing {
		all = append(all, fmt.Sprintf("%s: the repository doesn't have this path; nothing is removed", m.path))
	}
	for _, e := range t.clusters {
		if e.problem != "" && (e.key.Namespace == "" || e.key.Namespace == m.config.Namespace) {
			all = append(all, e.problem)
		}
	}
	for _, p := range t.problems {
		all = append(all, p.String())
	}
	return all
}

// isOpen reports whether a namespace is connected to the repository with a path.
func (s *scope) isOpen(namespace, path string) bool {
	return slices.ContainsFunc(s.members, func(m member) bool { return m.config.Namespace == namespace && m.path == path })
}

// covers reports whether the namespace of a cluster is connected to the repository with the path
// that the cluster was applied from.
func (s *scope) covers(one *candidate) bool {
	return slices.ContainsFunc(s.members, func(m member) bool { return m.config.Namespace == one.key.Namespace && within(one.dir(), m.path) })
}

// group has the Kustomizations of a cluster.
type group struct {
	own *kustomizev1.Kustomization
	all []kustomizev1.Kustomization
}

// groups returns the Kustomizations of a repository by Cluster. A directory that is applied later
// is in the namespace of the Kustomization of its cluster.
func groups(all []kustomizev1.Kustomization, source client.ObjectKey) map[client.ObjectKey]*group {
	out, keys := map[client.ObjectKey]*group{}, map[client.ObjectKey]client.ObjectKey{}
	for i := range all {
		if k := &all[i]; isOwn(k) && SourceOf(k) == source {
			key := clusterOf(k)
			if out[key] == nil {
				out[key] = &group{own: k}
			}
			out[key].all = append(out[key].all, *k)
			keys[client.ObjectKeyFromObject(k)] = key
		}
	}
	for i := range all {
		k := &all[i]
		if isOwn(k) || SourceOf(k) != source {
			continue
		}
		key, ok := keys[client.ObjectKey{Namespace: k.Namespace, Name: k.Labels[anywherev1.GitClusterLabel]}]
		if !ok {
			key = clusterOf(k)
			out[key] = &group{}
			keys[client.ObjectKey{Namespace: k.Namespace, Name: k.Labels[anywherev1.GitClusterLabel]}] = key
		}
		out[key].all = append(out[key].all, *k)
	}
	return out
}

// facts returns what the action for a cluster depends on.
func (s *scope) facts(one *candidate) facts {
	f := facts{git: s.presenceOf(one), open: one.entry != nil || s.covers(one), removing: one.removing}
	switch k := one.own; {
	case k == nil && len(one.all) > 0:
		f.kustomization = applied // Only directories that are applied later are left.
	case k == nil:
	case !k.DeletionTimestamp.IsZero():
		f.kustomization = releasing
	case k.Spec.Suspend:
		f.kustomization = suspended
	default:
		f.kustomization = applied
	}
	switch c := one.cluster; {
	case c == nil:
	case !c.DeletionTimestamp.IsZero():
		f.cluster = deleting
	case removal.Waits(c) || removal.IsConfirmed(c):
		f.cluster, f.confirmed = used, removal.IsConfirmed(c)
	default:
		f.cluster = unused
	}
	return f
}

// presenceOf combines the paths of a namespace: what one of them has is there, and only what all of
// them lack is absent.
func (s *scope) presenceOf(one *candidate) presence {
	if one.entry != nil {
		return present
	}
	found := absent
	for _, m := range s.members {
		if m.config.Namespace != one.key.Namespace {
			continue
		}
		t := s.trees[m.path]
		switch t.find(one.key, one.dir()) {
		case unknown:
			return unknown
		case broken:
			found = broken
		}
	}
	return found
}

// dir returns the directory that a cluster was applied from.
func (one *candidate) dir() string {
	if len(one.all) == 0 {
		return ""
	}
	return strings.TrimPrefix(one.all[0].Spec.Path, "./")
}
