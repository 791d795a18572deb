package lifecycle

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// planeOf returns a cluster with its objects on a management plane, without connecting.
func (o Options) planeOf(key client.ObjectKey, config *rest.Config, from string) *Workload {
	o.Kubeconfig = from
	cluster := &anywherev1.Cluster{}
	cluster.Namespace, cluster.Name = key.Namespace, key.Name
	return &Workload{Options: o, Config: &spec.Config{Cluster: cluster}, REST: config}
}

// checkSameVersion rejects a management plane with another Drover than this one: a move requires
// the same on both sides.
func (w *Workload) checkSameVersion(ctx context.Context, _ *phase.Progress) []error {
	plane, err := planeVersion(ctx, w.plane)
	if err != nil {
		return []error{err}
	}
	if plane != "" && plane != w.version() && !version.SameBuild(plane, w.version()) {
		return []error{fmt.Errorf("this is Drover %s and the management plane at %s has Drover %s: a move requires the same version; upgrade the management plane first, or use Drover %s",
			w.version(), w.Kubeconfig, plane, plane)}
	}
	return nil
}

// checkAdministrator rejects users who may not write to the namespace of all clusters: a move would
// stop half-way.
func (w *Workload) checkAdministrator(ctx context.Context, _ *phase.Progress) []error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: anywherev1.SystemNamespace, Verb: "delete", Resource: "secrets"},
	}}
	if err := w.plane.Client.Create(ctx, review); err != nil {
		return []error{fmt.Errorf("checking your permissions on the management plane at %s: %w", w.Kubeconfig, err)}
	}
	if review.Status.Allowed {
		return nil
	}
	return []error{fmt.Errorf("moving clusters requires an administrator of the management plane at %s", w.Kubeconfig)}
}

// checkMovable rejects a cluster that can't be handed over. One that an interrupted run has moved
// is not there anymore.
func (w *Workload) checkMovable(ctx context.Context, p *phase.Progress) []error {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	var none *inspect.NotFoundError
	if errors.As(err, &none) && p.Resumed() {
		return nil
	}
	if err != nil {
		return []error{err}
	}
	if live.Annotations[bootstrap.PausedForMove] != "" {
		return nil // An interrupted run has begun to move it.
	}
	return immovable(live)
}

// immovable returns why a cluster can't be handed over.
func immovable(c *anywherev1.Cluster) []error {
	switch {
	case !c.DeletionTimestamp.IsZero():
		return []error{fmt.Errorf("cluster %q is being deleted", c.Name)}
	case c.IsSelfManaged():
		return []error{fmt.Errorf("cluster %q is a management cluster: hand over its workload clusters instead", c.Name)}
	case c.IsPaused():
		return []error{fmt.Errorf("cluster %q is paused: find out why, then remove the annotation %s", c.Name, anywherev1.PausedAnnotation)}
	case c.Spec.GitOpsRef != nil:
		return []error{fmt.Errorf("the spec of cluster %q is in Git, from where Flux would create the cluster again: disconnect the repository with `drover gitops disable`, and remove gitOpsRef from the spec", c.Name)}
	case !apimeta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.Ready):
		return []error{fmt.Errorf("cluster %q is not ready: wait until it is; see `drover why cluster %s`", c.Name, c.Name)}
	}
	return nil
}

// managerName returns the name of the management cluster that a management plane is, or the empty
// string for an embedded plane.
func managerName(ctx context.Context, plane *inspect.Plane) (string, error) {
	all, err := plane.Clusters(ctx, "")
	if err != nil {
		return "", err
	}
	for i := range all {
		if all[i].IsSelfManaged() {
			return all[i].Name, nil
		}
	}
	return "", nil
}
