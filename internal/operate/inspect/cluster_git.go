package inspect

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

// git returns what keeps changes in Git from reaching a cluster: its FluxConfig, if that has a
// problem, and GitChanges that are not done. None of them decides whether the cluster is ready.
func (p *Plane) git(ctx context.Context, c *anywherev1.Cluster) ([]*Node, error) {
	ref := c.Spec.GitOpsRef
	if ref == nil {
		return nil, nil
	}
	config, changes := &anywherev1.FluxConfig{}, &droverv1.GitChangeList{}
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, config)
	if ignoreUnreadable(err) != nil {
		return nil, wrap(err, "reading FluxConfig %q", ref.Name)
	}
	err = p.Client.List(ctx, changes, client.InNamespace(c.Namespace))
	if ignoreUnreadable(err) != nil {
		return nil, wrap(err, "listing GitChanges of cluster %q", c.Name)
	}
	return GitNodes(c.Name, config, changes.Items), nil
}

// ignoreUnreadable returns nil for what doesn't exist, is not served, or is hidden from the caller.
func ignoreUnreadable(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// GitNodes returns the objects that keep changes in Git from reaching a cluster: those that are not
// ready. A FluxConfig without conditions is on a plane
// that does not run GitOps.
func GitNodes(cluster string, config *anywherev1.FluxConfig, changes []droverv1.GitChange) []*Node {
	var out []*Node
	if n := repositoryNode(config); n != nil {
		out = append(out, n)
	}
	for i := range changes {
		if n := changeNode(&changes[i]); n != nil && changes[i].Spec.Cluster == cluster {
			out = append(out, n)
		}
	}
	return out
}

// repositoryNode returns nil for a FluxConfig without problems.
func repositoryNode(config *anywherev1.FluxConfig) *Node {
	n := node(kindFlux, config, config.Status.Conditions)
	if len(n.Conditions) == 0 || n.Well() {
		return nil
	}
	return n
}

// changeNode returns nil for a GitChange that is done.
func changeNode(g *droverv1.GitChange) *Node {
	n := node(kindGitChange, g, g.Status.Conditions)
	n.Detail = string(g.Spec.Action)
	if n.Well() {
		return nil
	}
	return n
}

// GitWaiting lists what waits for Git on a management plane, by namespace: FluxConfigs with a
// problem, and GitChanges that are not done, each with its last error.
func (p *Plane) GitWaiting(ctx context.Context) ([]Link, error) {
	configs, changes := &anywherev1.FluxConfigList{}, &droverv1.GitChangeList{}
	for _, list := range []client.ObjectList{configs, changes} {
		if err := ignoreUnreadable(p.Client.List(ctx, list)); err != nil {
			return nil, wrap(err, "listing what waits for Git")
		}
	}
	return gitLinks(configs.Items, changes.Items), nil
}

// gitLinks returns why objects are not ready, sorted.
func gitLinks(configs []anywherev1.FluxConfig, changes []droverv1.GitChange) []Link {
	var out []Link
	add := func(n *Node) {
		if n != nil {
			link, _ := n.cause()
			out = append(out, link)
		}
	}
	for i := range configs {
		add(repositoryNode(&configs[i]))
	}
	for i := range changes {
		add(changeNode(&changes[i]))
	}
	slices.SortStableFunc(out, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// inGit returns why changes in Git don't reach a cluster.
func (n *Node) inGit() []Link {
	var out []Link
	for _, c := range n.Children {
		if c.Kind != kindFlux && c.Kind != kindGitChange {
			continue
		}
		link, _ := c.cause()
		out = append(out, link)
	}
	return out
}
