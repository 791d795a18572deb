package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// keptObjects is the checkpoint key of the objects that the cluster references, which are deleted
// after it.
const keptObjects = "objects"

// Delete plans the deletion of a workload cluster.
func (w *Workload) Delete() (*phase.Plan, error) {
	return w.plan(Delete, w.Config, []phase.Phase{
		{Name: SetupAndValidate, Summary: "Run preflight checks", Repeat: true, Run: w.setupDelete},
		{Name: DeleteWorkloadCluster, Summary: summaryDelete, Run: w.connected(w.delete), Changes: []string{
			fmt.Sprintf("deletes Cluster %s with its machines and addresses", w.Config.Cluster.Name),
			"deletes the datacenter and machine configs that no other cluster uses",
			"removes " + w.files().Kubeconfig(),
		}},
		{Name: CleanupGitRepo, Summary: summaryGitRemoved, Run: w.connected(w.verifyRemoved)},
	})
}

func (w *Workload) setupDelete(ctx context.Context, p *phase.Progress) error {
	if err := w.connect(ctx); err != nil {
		return err
	}
	if w.Undo {
		if err := w.checkUnfinished(ctx, p); err != nil {
			return err
		}
	}
	return preflight(ctx, p, w.checkVersions, w.checkDeletable)
}

// checkDeletable finds the cluster, and rejects the deletion of one that is in use or paused.
func (w *Workload) checkDeletable(ctx context.Context, p *phase.Progress) []error {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	var none *inspect.NotFoundError
	if errors.As(err, &none) && (p.Resumed() || w.Config.Cluster.UID == "" && len(w.Config.Objects()) > 1) {
		return nil // An earlier run deleted it or never created it, but its other objects may exist.
	}
	if err != nil {
		return []error{err}
	}
	w.Config.Cluster.Namespace = live.Namespace
	if live.IsSelfManaged() && !live.IsManagedByCLI() {
		return []error{fmt.Errorf("cluster %q is a management cluster: delete it without --kubeconfig", live.Name)}
	}
	if live.IsPaused() && live.Annotations[anywherev1.AllowDeleteWhenPausedAnnotation] != "true" {
		return []error{fmt.Errorf("cluster %q is paused, so its machines would not be deleted: remove the annotation %s first", live.Name, anywherev1.PausedAnnotation)}
	}
	return nil
}

// delete deletes the cluster, waits until it is gone, and deletes the objects that no other cluster
// uses.
func (w *Workload) delete(ctx context.Context, p *phase.Progress) error {
	live, err := w.live(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err := w.checkLeft(p, live); err != nil {
		return err
	}
	objects, err := w.referenced(ctx, p, live)
	if err != nil {
		return err
	}
	if err := w.deleteCluster(ctx, p, live); err != nil {
		return err
	}
	if objects, err = w.deletable(ctx, p, objects); err != nil {
		return err
	}
	if err := w.deleteUnused(ctx, objects); err != nil {
		return err
	}
	return w.files().removeKubeconfig()
}

// deleteCluster deletes the cluster, or lets Flux delete it, and waits until it is gone. It may be
// nil, if only its files are left.
func (w *Workload) deleteCluster(ctx context.Context, p *phase.Progress, live *anywherev1.Cluster) error {
	if live != nil {
		if err := followTrace(ctx, w.plane.Client, live); err != nil {
			return err
		}
	}
	byFlux, err := w.removeFromGit(ctx, p, live)
	if err != nil || live == nil {
		return err
	}
	if !byFlux {
		if err := w.plane.Client.Delete(ctx, live, client.Preconditions{UID: &live.UID}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting cluster %q: %w", live.Name, err)
		}
	}
	return w.follow(p, deleting).untilGone(ctx, w.Limits.Delete, string(live.UID))
}

// deletable returns those of the objects, given as "kind/name", that may be deleted with the
// cluster: when undoing a creation only what it created, and with Git all but the FluxConfig, for
// which Git may have other clusters.
func (w *Workload) deletable(ctx context.Context, p *phase.Progress, names []string) ([]string, error) {
	record, err := gitRecordOf(p)
	if err != nil {
		return nil, err
	}
	if record.Change != "" {
		names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, anywherev1.FluxConfigKind+"/") })
	}
	if w.Undo {
		return w.left(ctx, p, names)
	}
	return names, nil
}

// referenced returns the objects that the cluster references, as "kind/name": from the checkpoint,
// and from the live cluster or, without one, the spec.
func (w *Workload) referenced(ctx context.Context, p *phase.Progress, live *anywherev1.Cluster) ([]string, error) {
	var names []string
	if _, err := p.Kept(keptObjects, &names); err != nil {
		return nil, err
	}
	config := w.Config
	if live != nil {
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

// deleteUnused deletes the objects that no other cluster references.
func (w *Workload) deleteUnused(ctx context.Context, names []string) error {
	all := &anywherev1.ClusterList{}
	if err := w.plane.Client.List(ctx, all, client.InNamespace(w.key().Namespace)); err != nil {
		return fmt.Errorf("listing clusters that use the same configs: %w", err)
	}
	for i := range all.Items {
		for _, ref := range spec.References(&all.Items[i]) {
			names = slices.DeleteFunc(names, func(n string) bool { return n == ref.Kind+"/"+ref.Name })
		}
	}
	for _, n := range names {
		if err := w.plane.Client.Delete(ctx, w.reference(n)); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s: %w", n, err)
		}
	}
	return nil
}

// typeName returns the kind of an object of Drover's own API.
func typeName(o client.Object) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}
