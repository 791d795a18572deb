package manifests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/addons/objects"
	"github.com/drover-dev/drover/internal/addons/tool"
	"github.com/drover-dev/drover/internal/workload"
)

const (
	fieldManager = "drover-addons"
	// absent as a resource version lets an API server make an object, and refuse to change one: no object has ever had it, as the server's
	// own first writes come before.
	absent = "1"
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
type writer struct {
	cluster *workload.Cluster
	owner   tool.ID
	options addonsv1.HelmOptions
	ignore  []addonsv1.IgnoreRule
	values  map[string]any
}

func (w *writer) client(o *object) dynamic.ResourceInterface {
	return w.cluster.Dynamic().Resource(o.Resource).Namespace(o.GetNamespace())
}

// isHome says that an object is the namespace that the record is in. It may be of several installations, so it belongs to none and stays.
func (w *writer) isHome(o *object) bool {
	return o.GroupVersionKind().GroupKind().String() == "Namespace" && o.GetName() == w.owner.Namespace
}

// applyAll writes objects in their order.
func (w *writer) applyAll(ctx context.Context, all []*object) error {
	for _, group := range objects.Groups(all) {
		if err := objects.InParallel(ctx, group, w.apply); err != nil {
			return err
		}
		if group[0].GetKind() == objects.CRDKind {
			if err := objects.AwaitEstablished(ctx, w.cluster, group); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) apply(ctx context.Context, o *object) error {
	if err := w.applyOne(ctx, o); err != nil {
		return objects.Classify(fmt.Errorf("applying %s: %w", o.Title(), objects.Redact(err, w.values)))
	}
	return nil
}

// applyOne writes an object with one request if it can: most objects of a first revision are not there, and most of a later one are ours.
func (w *writer) applyOne(ctx context.Context, o *object) error {
	if !o.Known() {
		if err := o.Locate(w.cluster.Mapper(), w.owner.Namespace); err != nil {
			return err
		}
	}
	if w.isHome(o) {
		return w.patch(ctx, o, o.Unstructured)
	}
	w.claim(o)
	if !o.ours {
		fresh := o.DeepCopy()
		fresh.SetResourceVersion(absent)
		if err := w.patch(ctx, o, fresh); !apierrors.IsConflict(err) {
			return err
		}
	} else if len(objects.Pointers(w.ignore, o.Unstructured)) == 0 {
		return w.patch(ctx, o, o.Unstructured)
	}
	return w.onto(ctx, o)
}

// onto writes an object after a look at what is there.
func (w *writer) onto(ctx context.Context, o *object) error {
	live, err := w.client(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return w.patch(ctx, o, o.Unstructured)
	}
	if err != nil {
		return err
	}
	if err := w.mayTake(o, live); err != nil {
		return err
	}
	return w.patch(ctx, o, objects.WithLive(o.Unstructured, live, objects.Pointers(w.ignore, o.Unstructured)))
}

// mayTake refuses what is somebody else's.
func (w *writer) mayTake(o *object, live *unstructured.Unstructured) error {
	if o.ours || w.owns(live) {
		return nil
	}
	if whose := ownerOf(live); whose != "" {
		return &tool.TerminalError{Err: fmt.Errorf("it belongs to %s", whose)}
	}
	if !w.options.TakeOwnership {
		return &tool.TerminalError{Err: errors.New("it is there already and belongs to no installation; takeOwnership would adopt it")}
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
	annotations[tool.NameAnnotation], annotations[tool.NamespaceAnnotation] = w.owner.Name, w.owner.Namespace
	o.SetAnnotations(annotations)
}

func (w *writer) owns(live metav1.Object) bool {
	a := live.GetAnnotations()
	return live.GetLabels()[tool.OwnerLabel] == tool.OwnerDrover && a[tool.NameAnnotation] == w.owner.Name && a[tool.NamespaceAnnotation] == w.owner.Namespace
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

// patch applies a body for an object. All of its fields become ours, whoever had them.
func (w *writer) patch(ctx context.Context, o *object, body *unstructured.Unstructured) error {
	_, err := w.patched(ctx, o, body, metav1.PatchOptions{})
	return err
}

func (w *writer) patched(
	ctx context.Context, o *object, body *unstructured.Unstructured, options metav1.PatchOptions,
) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	force := true
	options.Force, options.FieldManager, options.FieldValidation = &force, fieldManager, metav1.FieldValidationStrict
	if w.options.DisableOpenAPIValidation {
		options.FieldValidation = metav1.FieldValidationIgnore
	}
	return w.client(o).Patch(ctx, o.GetName(), types.ApplyPatchType, data, options)
}

// watchOf is the watch of an object's kind. That of Secrets is the one of records.
func watchOf(o *object) workload.Watch {
	if o.Resource == secretsResource {
		return allRecords
	}
	return workload.Watch{Resource: o.Resource, Selector: selector}
}
