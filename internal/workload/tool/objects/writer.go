package objects

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// absent is a resource version that no object has, because the server's own first writes precede
// it. An apply with it creates an object and never updates one.
const absent = "1"

// Writer writes the objects of one installation with server-side apply. The tool decides about
// ownership.
type Writer struct {
	Cluster *workload.Cluster
	// Manager is the field manager.
	Manager string
	// Want is the desired state. Its values are masked in errors.
	Want tool.Want
}

// Client returns a client for objects of the same resource and namespace.
func (w *Writer) Client(o *Object) dynamic.ResourceInterface {
	return w.Cluster.Dynamic().Resource(o.Resource).Namespace(o.GetNamespace())
}

// WriteAll writes objects in order, those of a kind in parallel. It waits until new kinds are
// served before it writes their objects.
func WriteAll[T Item](ctx context.Context, w *Writer, all []T, write func(context.Context, T) error) error {
	for _, group := range Groups(all) {
		if err := InParallel(ctx, group, write); err != nil {
			return err
		}
		if group[0].GetKind() == CRDKind {
			if err := AwaitEstablished(ctx, w.Cluster, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// Create creates an object with one request. It fails with a conflict if the object exists.
func (w *Writer) Create(ctx context.Context, o *Object) error {
	fresh := o.DeepCopy()
	fresh.SetResourceVersion(absent)
	return w.Patch(ctx, o, fresh)
}

// Patch applies body and takes over all of its fields.
func (w *Writer) Patch(ctx context.Context, o *Object, body *unstructured.Unstructured) error {
	_, err := w.patched(ctx, o, body, metav1.PatchOptions{})
	return err
}

// PatchOver applies an object but keeps ignored fields as they are.
func (w *Writer) PatchOver(ctx context.Context, o *Object, live *unstructured.Unstructured) error {
	return w.Patch(ctx, o, WithLive(o.Unstructured, live, w.Ignored(o)))
}

// Ignored returns the ignored fields of an object.
func (w *Writer) Ignored(o *Object) [][]string { return Pointers(w.Want.Ignore, o.Unstructured) }

// Difference returns what applying an object would change. It is empty if nothing would. It changes
// nothing.
func (w *Writer) Difference(ctx context.Context, o *Object, live *unstructured.Unstructured) (string, error) {
	ignored := w.Ignored(o)
	after, err := w.patched(ctx, o, WithLive(o.Unstructured, live, ignored), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", w.Failed("dry-running the apply of", o, err)
	}
	return FieldDiff(WithoutServerFields(Without(live, ignored)), WithoutServerFields(Without(after, ignored))), nil
}

// Creation returns the change that creates an object.
func Creation(o *Object) tool.Change {
	return tool.Change{Object: o.Named(), Action: tool.Create, Diff: FieldDiff(nil, WithoutServerFields(o.Unstructured))}
}

func (w *Writer) patched(
	ctx context.Context, o *Object, body *unstructured.Unstructured, options metav1.PatchOptions,
) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	force := true
	options.Force, options.FieldManager, options.FieldValidation = &force, w.Manager, w.Validation()
	return w.Client(o).Patch(ctx, o.GetName(), types.ApplyPatchType, data, options)
}

// Validation returns the field validation of requests.
func (w *Writer) Validation() string {
	if w.Want.Options.DisableOpenAPIValidation {
		return metav1.FieldValidationIgnore
	}
	return metav1.FieldValidationStrict
}

// Failed wraps an error with the action and the object, without values.
func (w *Writer) Failed(doing string, o *Object, err error) error {
	if err == nil {
		return nil
	}
	return Classify(fmt.Errorf("%s %s: %w", doing, o.Title(), Redact(err, w.Want.Values)))
}

// Check reads an object and reports whether it is ready.
func (c *Checker) Check(ctx context.Context, w *Writer, o *Object) (Verdict, error) {
	v, err := c.checkLive(ctx, w, o)
	v.Title = o.Title()
	return v, err
}

func (c *Checker) checkLive(ctx context.Context, w *Writer, o *Object) (Verdict, error) {
	switch {
	case !o.Known():
		return Verdict{Reason: "kind is not served yet"}, nil
	case IsJob(o.Unstructured) && !w.Want.Options.WaitForJobs:
		return Verdict{Ready: true}, nil
	}
	live, err := w.Client(o).Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Verdict{Reason: "not found"}, nil
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("reading %s: %w", o.Title(), err)
	}
	return c.Evaluate(ctx, live, w.Want.Health)
}
