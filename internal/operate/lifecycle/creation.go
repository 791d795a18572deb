package lifecycle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// keptCreation is the checkpoint key of a creation's identity. Only the checkpoint of an unfinished
// creation, or of its cleanup, has one.
const keptCreation = "creation"

// NotLeftError means that a cluster, or what exists of it, is not the work of an unfinished
// creation that is recorded here, so that a cleanup must not touch it.
type NotLeftError struct {
	Cluster string
	// Path is the checkpoint that would record the creation.
	Path string
}

func (e *NotLeftError) Error() string {
	return fmt.Sprintf("cluster %q exists, but no unfinished creation of it is recorded in %q: nothing was deleted\nTry: drover delete cluster %s", e.Cluster, e.Path, e.Cluster)
}

// identify annotates the objects of a spec with the identity of their creation, which it records
// first: a cleanup deletes only what bears it.
func identify(p *phase.Progress, c *spec.Config) error {
	id, err := creation(p)
	if err != nil {
		return err
	}
	if id == "" {
		id = rand.Text()
		if err := p.Keep(keptCreation, id); err != nil {
			return err
		}
	}
	for _, o := range c.Objects() {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[anywherev1.CreationAnnotation] = id
		o.SetAnnotations(annotations)
	}
	return nil
}

// creation returns the identity of the unfinished creation, or nothing if none is recorded.
func creation(p *phase.Progress) (string, error) {
	id := ""
	_, err := p.Kept(keptCreation, &id)
	return id, err
}

// checkUnfinished finishes a cleanup that has nothing to do, and rejects that of a cluster that the
// recorded creation did not create.
func (w *Workload) checkUnfinished(ctx context.Context, p *phase.Progress) error {
	live, err := w.plane.Find(ctx, w.Config.Cluster.Namespace, w.Config.Cluster.Name)
	var none *inspect.NotFoundError
	if err != nil && !errors.As(err, &none) {
		return err
	}
	id, err := creation(p)
	if err == nil && live == nil && id == "" {
		return phase.Finish("nothing was created")
	}
	return errors.Join(err, w.checkLeft(p, live))
}

// checkLeft rejects the cleanup of a cluster that the recorded creation did not create.
func (w *Workload) checkLeft(p *phase.Progress, live *anywherev1.Cluster) error {
	if !w.Undo || live == nil {
		return nil
	}
	id, err := creation(p)
	if err != nil {
		return err
	}
	record, err := gitRecordOf(p)
	if err == nil && (id == "" || !isLeft(live, id, record)) {
		err = &NotLeftError{Cluster: live.Name, Path: w.files().Record().Path()}
	}
	return err
}

// isLeft reports whether a creation created a cluster: it bears its identity, or Flux applied it
// after the creation had committed it.
func isLeft(live *anywherev1.Cluster, id string, record gitRecord) bool {
	return live.Annotations[anywherev1.CreationAnnotation] == id || record.Change != "" && live.Labels[fluxNameLabel] != ""
}

// left returns those of the objects, given as "kind/name", that the recorded creation created.
func (w *Workload) left(ctx context.Context, p *phase.Progress, names []string) ([]string, error) {
	id, err := creation(p)
	if err != nil || id == "" {
		return nil, err
	}
	var out []string
	for _, n := range names {
		live := w.reference(n)
		switch err := w.plane.Client.Get(ctx, client.ObjectKeyFromObject(live), live); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", n, err)
		case live.GetAnnotations()[anywherev1.CreationAnnotation] == id:
			out = append(out, n)
		}
	}
	return out, nil
}

// reference returns an object given as "kind/name", with nothing but its identity.
func (w *Workload) reference(name string) *unstructured.Unstructured {
	kind, name, _ := strings.Cut(name, "/")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(anywherev1.GroupVersion.WithKind(kind))
	u.SetNamespace(w.key().Namespace)
	u.SetName(name)
	return u
}
