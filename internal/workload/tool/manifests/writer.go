package manifests

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

const (
	fieldManager = "drover-addons"
	// KeepAnnotation on an object, in the package or on the cluster, keeps it when the installation
	// is removed.
	KeepAnnotation = "addons.cluster.x-k8s.io/keep"
	// helmName and helmNamespace mark objects of Helm releases.
	helmName, helmNamespace = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
)

// object is an object of an installation.
type object struct {
	objects.Object
	// owned reports that the object exists and belongs to the installation. If false, existence and
	// owner are unknown.
	owned bool
}

// writer writes the objects of one installation.
type writer struct{ objects.Writer }

// isReleaseNamespace reports whether an object is the namespace of the record. Several
// installations can share it, so none owns or deletes it.
func (w *writer) isReleaseNamespace(o *object) bool {
	return o.GroupVersionKind().GroupKind().String() == "Namespace" && o.GetName() == w.Want.ID.Namespace
}

// applyAll writes objects in order.
func (w *writer) applyAll(ctx context.Context, all []*object) error {
	return objects.WriteAll(ctx, &w.Writer, all, func(ctx context.Context, o *object) error {
		return w.Failed("applying", &o.Object, w.applyOne(ctx, o))
	})
}

// applyOne writes an object with one request if possible: usually the objects of a first revision
// do not exist, and those of a later one are owned.
func (w *writer) applyOne(ctx context.Context, o *object) error {
	if !o.Known() {
		if err := o.Locate(w.Cluster.Mapper(), w.Want.ID.Namespace); err != nil {
			return err
		}
	}
	if w.isReleaseNamespace(o) {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	w.claim(o)
	if !o.owned {
		if err := w.Create(ctx, &o.Object); !apierrors.IsConflict(err) {
			return err
		}
	} else if len(w.Ignored(&o.Object)) == 0 {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	return w.applyExisting(ctx, o)
}

// applyExisting reads an object and checks its owner before it writes.
func (w *writer) applyExisting(ctx context.Context, o *object) error {
	live, err := w.Client(&o.Object).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	if err != nil {
		return err
	}
	if err := w.checkOwner(o, live); err != nil {
		return err
	}
	return w.PatchOver(ctx, &o.Object, live)
}

// checkOwner rejects an object that belongs to another owner.
func (w *writer) checkOwner(o *object, live *unstructured.Unstructured) error {
	if o.owned || w.owns(live) {
		return nil
	}
	if whose := ownerOf(live); whose != "" {
		return &tool.TerminalError{Err: fmt.Errorf("owned by %s", whose)}
	}
	if !w.Want.Options.TakeOwnership {
		return &tool.TerminalError{Err: errors.New("already exists and belongs to no installation; set takeOwnership to adopt it")}
	}
	return nil
}

// claim marks an object as owned by the installation.
func (w *writer) claim(o *object) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[tool.OwnerLabel] = tool.OwnerDrover
	delete(labels, tool.NameLabel) // it would be taken for a record
	o.SetLabels(labels)
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[tool.NameAnnotation], annotations[tool.NamespaceAnnotation] = w.Want.ID.Name, w.Want.ID.Namespace
	o.SetAnnotations(annotations)
}

func (w *writer) owns(live metav1.Object) bool {
	a := live.GetAnnotations()
	return live.GetLabels()[tool.OwnerLabel] == tool.OwnerDrover && a[tool.NameAnnotation] == w.Want.ID.Name && a[tool.NamespaceAnnotation] == w.Want.ID.Namespace
}

// ownerOf describes the owner of an object. It is empty if it has none.
func ownerOf(live metav1.Object) string {
	a := live.GetAnnotations()
	if name := a[helmName]; name != "" {
		return fmt.Sprintf("Helm release %q", a[helmNamespace]+"/"+name)
	}
	if name := a[tool.NameAnnotation]; name != "" && live.GetLabels()[tool.OwnerLabel] == tool.OwnerDrover {
		return fmt.Sprintf("installation %q", a[tool.NamespaceAnnotation]+"/"+name)
	}
	return ""
}

// watchOf returns the watch of an object's kind. Secrets share the watch of records.
func watchOf(o *object) workload.Watch {
	if o.Resource == secretsResource {
		return allRecords
	}
	return workload.Watch{Resource: o.Resource, Selector: selector}
}
