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
	// KeepAnnotation on an object of a package, or on the cluster, makes it outlive the installation.
	KeepAnnotation = "addons.cluster.x-k8s.io/keep"
	// helmName is on objects of Helm releases.
	helmName, helmNamespace = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
)

// object is one of an installation.
type object struct {
	objects.Object
	// ours says that it is on the cluster as one of the installation. Of others it is not known whether and whose.
	ours bool
}

// writer puts objects of one installation onto a cluster.
type writer struct{ objects.Writer }

// isHome says that an object is the namespace that the record is in. It may be of several installations, so it belongs to none and stays.
func (w *writer) isHome(o *object) bool {
	return o.GroupVersionKind().GroupKind().String() == "Namespace" && o.GetName() == w.Want.ID.Namespace
}

// applyAll writes objects in their order.
func (w *writer) applyAll(ctx context.Context, all []*object) error {
	return objects.WriteAll(ctx, &w.Writer, all, func(ctx context.Context, o *object) error {
		return w.Failed("applying", &o.Object, w.applyOne(ctx, o))
	})
}

// applyOne writes an object with one request if it can: most objects of a first revision are not there, and most of a later one are ours.
func (w *writer) applyOne(ctx context.Context, o *object) error {
	if !o.Known() {
		if err := o.Locate(w.Cluster.Mapper(), w.Want.ID.Namespace); err != nil {
			return err
		}
	}
	if w.isHome(o) {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	w.claim(o)
	if !o.ours {
		if err := w.Create(ctx, &o.Object); !apierrors.IsConflict(err) {
			return err
		}
	} else if len(w.Ignored(&o.Object)) == 0 {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	return w.onto(ctx, o)
}

// onto writes an object after a look at what is there.
func (w *writer) onto(ctx context.Context, o *object) error {
	live, err := w.Client(&o.Object).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return w.Patch(ctx, &o.Object, o.Unstructured)
	}
	if err != nil {
		return err
	}
	if err := w.mayTake(o, live); err != nil {
		return err
	}
	return w.PatchOver(ctx, &o.Object, live)
}

// mayTake refuses what is somebody else's.
func (w *writer) mayTake(o *object, live *unstructured.Unstructured) error {
	if o.ours || w.owns(live) {
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

// claim marks an object as one of the installation.
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

// ownerOf says in words whose an object is, nothing if it is nobody's.
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

// watchOf is the watch of an object's kind. That of Secrets is the one of records.
func watchOf(o *object) workload.Watch {
	if o.Resource == secretsResource {
		return allRecords
	}
	return workload.Watch{Resource: o.Resource, Selector: selector}
}
