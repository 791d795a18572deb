package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// keptObjects are what the cluster names, to be deleted once it is gone.
const keptObjects = "objects"

// Delete is the plan to delete a workload cluster.
func (w *Workload) Delete() (*workflow.Plan, error) {
	c := w.Config.Cluster
	return w.plan(workflow.Delete,
		workflow.Phase{Name: workflow.SetupAndValidate, Repeat: true, Run: w.setupDelete},
		workflow.Phase{Name: workflow.DeleteWorkloadCluster, Run: w.connected(w.delete), Changes: []string{
			fmt.Sprintf("deletes Cluster %s with its machines and addresses", c.Name),
			"deletes the datacenter and machine configs that only it uses",
			"removes " + w.files().Kubeconfig(),
		}},
		workflow.Phase{Name: workflow.CleanupGitRepo, Run: w.withoutGit},
	)
}

func (w *Workload) setupDelete(ctx context.Context, p *workflow.Progress) error {
	if err := w.connect(ctx); err != nil {
		return err
	}
	return preflight(ctx, p, w.checkVersions, w.checkDeletable)
}

// checkDeletable finds the cluster, and refuses one that others need.
func (w *Workload) checkDeletable(ctx context.Context, p *workflow.Progress) []error {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	var none *inspect.NotFoundError
	if errors.As(err, &none) && (p.Resumed() || w.Config.Cluster.UID == "" && len(w.Config.Objects()) > 1) {
		return nil // An earlier run deleted it, or never made it: what it names may be left.
	}
	if err != nil {
		return []error{err}
	}
	w.Config.Cluster.Namespace = live.Namespace
	if live.IsSelfManaged() && !live.IsManagedByCLI() {
		return []error{fmt.Errorf("cluster %q is a management cluster: delete it without --kubeconfig", live.Name)}
	}
	if live.IsPaused() && live.Annotations[anywherev1.AllowDeleteWhenPausedAnnotation] != "true" {
		return []error{fmt.Errorf("cluster %q is paused, so nobody would delete its machines: remove the annotation %s first", live.Name, anywherev1.PausedAnnotation)}
	}
	return nil
}

// delete deletes the cluster, waits until it is gone, and then deletes what only it needed.
func (w *Workload) delete(ctx context.Context, p *workflow.Progress) error {
	live := &anywherev1.Cluster{}
	err := w.plane.Client.Get(ctx, w.key(), live)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading cluster %q: %w", w.key().Name, err)
	}
	objects, gatherErr := w.named(ctx, p, live)
	if gatherErr != nil {
		return gatherErr
	}
	if err == nil {
		if err := followTrace(ctx, w.plane.Client, live); err != nil {
			return err
		}
		if err := w.plane.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting cluster %q: %w", live.Name, err)
		}
		if err := w.follow(p).untilGone(ctx, w.Limits.Delete, string(live.UID)); err != nil {
			return err
		}
	}
	if err := w.deleteUnused(ctx, objects); err != nil {
		return err
	}
	return w.files().removeKubeconfig()
}

// named are the objects that the cluster names, as "kind/name": from the record, from the cluster, or from the spec.
func (w *Workload) named(ctx context.Context, p *workflow.Progress, live *anywherev1.Cluster) ([]string, error) {
	var names []string
	if _, err := p.Kept(keptObjects, &names); err != nil {
		return nil, err
	}
	config := w.Config
	if live.UID != "" {
		var missing *spec.MissingError
		gathered, err := spec.Gather(ctx, w.plane.Client, live)
		if err != nil && !errors.As(err, &missing) {
			return nil, err
		}
		config = gathered
	}
	for _, o := range config.Objects() {
		if _, cluster := o.(*anywherev1.Cluster); !cluster && !slices.Contains(names, typeName(o)+"/"+o.GetName()) {
			names = append(names, typeName(o)+"/"+o.GetName())
		}
	}
	return names, p.Keep(keptObjects, names)
}

// deleteUnused deletes objects that no other cluster names.
func (w *Workload) deleteUnused(ctx context.Context, names []string) error {
	all := &anywherev1.ClusterList{}
	if err := w.plane.Client.List(ctx, all, client.InNamespace(w.key().Namespace)); err != nil {
		return fmt.Errorf("looking for clusters that use the same configs: %w", err)
	}
	for i := range all.Items {
		for _, ref := range spec.References(&all.Items[i]) {
			names = slices.DeleteFunc(names, func(n string) bool { return n == ref.Kind+"/"+ref.Name })
		}
	}
	for _, n := range names {
		kind, name, _ := strings.Cut(n, "/")
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(anywherev1.GroupVersion.WithKind(kind))
		u.SetNamespace(w.key().Namespace)
		u.SetName(name)
		if err := w.plane.Client.Delete(ctx, u); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s %q: %w", kind, name, err)
		}
	}
	return nil
}

// typeName is the kind of one of our objects.
func typeName(o client.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}
