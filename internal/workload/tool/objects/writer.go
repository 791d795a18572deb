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

// absent as a resource version lets an API server make an object, and refuse to change one: no object has ever had it, as the server's own
// first writes come before.
const absent = "1"

// Writer puts objects of one installation onto a cluster with server-side apply. Whose an object is, and what to do about that, is up to the
// tool.
type Writer struct {
	Cluster *workload.Cluster
	// Manager is the name under which fields are owned.
	Manager string
	// Want is what the installation should be. Its values are kept out of errors.
	Want tool.Want
}

// Client is for objects of the same kind in the same place.
func (w *Writer) Client(o *Object) dynamic.ResourceInterface {
	return w.Cluster.Dynamic().Resource(o.Resource).Namespace(o.GetNamespace())
}

// WriteAll writes objects in their order, those of a kind side by side. What comes after new kinds waits until they are served.
func WriteAll[T One](ctx context.Context, w *Writer, all []T, write func(context.Context, T) error) error {
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

// Create makes an object that is not there, with one request. It fails with a conflict if it is.
func (w *Writer) Create(ctx context.Context, o *Object) error {
	fresh := o.DeepCopy()
	fresh.SetResourceVersion(absent)
	return w.Patch(ctx, o, fresh)
}

// Patch applies a body for an object. All of its fields become ours, whoever had them.
func (w *Writer) Patch(ctx context.Context, o *Object, body *unstructured.Unstructured) error {
	_, err := w.patched(ctx, o, body, metav1.PatchOptions{})
	return err
}

// PatchOver applies an object, except for fields that others may change: those stay as they are.
func (w *Writer) PatchOver(ctx context.Context, o *Object, live *unstructured.Unstructured) error {
	return w.Patch(ctx, o, WithLive(o.Unstructured, live, w.Ignored(o)))
}

// Ignored are the fields of an object that others may change.
func (w *Writer) Ignored(o *Object) [][]string { return Pointers(w.Want.Ignore, o.Unstructured) }

// Difference is what applying an object would change of what is there, empty if that is nothing. It changes nothing itself.
func (w *Writer) Difference(ctx context.Context, o *Object, live *unstructured.Unstructured) (string, error) {
	ignored := w.Ignored(o)
	after, err := w.patched(ctx, o, WithLive(o.Unstructured, live, ignored), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", w.Failed("dry-running the apply of", o, err)
	}
	return FieldDiff(Essence(Without(live, ignored)), Essence(Without(after, ignored))), nil
}

// Creation is the change that makes an object.
func Creation(o *Object) tool.Change {
	return tool.Change{Object: o.Named(), Action: tool.Create, Diff: FieldDiff(nil, Essence(o.Unstructured))}
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

// Validation is how strict API servers are about fields.
func (w *Writer) Validation() string {
	if w.Want.Options.DisableOpenAPIValidation {
		return metav1.FieldValidationIgnore
	}
	return metav1.FieldValidationStrict
}

// Failed says what failed on which object, without values.
func (w *Writer) Failed(doing string, o *Object, err error) error {
	if err == nil {
		return nil
	}
	return Classify(fmt.Errorf("%s %s: %w", doing, o.Title(), Redact(err, w.Want.Values)))
}

// Judge reads an object and says whether it is ready.
func (c *Checker) Judge(ctx context.Context, w *Writer, o *Object) (Verdict, error) {
	v, err := c.judge(ctx, w, o)
	v.Title = o.Title()
	return v, err
}

func (c *Checker) judge(ctx context.Context, w *Writer, o *Object) (Verdict, error) {
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
	return c.Verdict(ctx, live, w.Want.Health)
}
