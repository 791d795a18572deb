package inspect

import (
	"context"

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
	return gitNodes(c.Name, config, changes.Items), nil
}

// ignoreUnreadable returns nil for what doesn't exist, is not served, or is hidden from the caller.
func ignoreUnreadable(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apimeta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// gitNodes returns the objects that are not ready. A FluxConfig without conditions is on a plane
// that does not run GitOps.
func gitNodes(cluster string, config *anywherev1.FluxConfig, changes []droverv1.GitChange) []*Node {
	var out []*Node
	if n := node(kindFlux, config, config.Status.Conditions); len(n.Conditions) > 0 && !n.Well() {
		out = append(out, n)
	}
	for i := range changes {
		g := &changes[i]
		n := node(kindGitChange, g, g.Status.Conditions)
		n.Detail = string(g.Spec.Action)
		if g.Spec.Cluster == cluster && !n.Well() {
			out = append(out, n)
		}
	}
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
