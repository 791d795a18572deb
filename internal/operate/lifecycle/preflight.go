package lifecycle

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// PreflightError are the reasons, all of them, why nothing was begun.
type PreflightError struct{ Problems []error }

func (e *PreflightError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d things are in the way:", len(e.Problems))
	for _, p := range e.Problems {
		fmt.Fprintf(&out, "\n  - %v", p)
	}
	return out.String()
}

// Unwrap lets callers look for one of them.
func (e *PreflightError) Unwrap() []error { return e.Problems }

// check looks at one thing and changes nothing.
type check func(context.Context, *workflow.Progress) []error

// preflight makes all checks, so that a user hears of all that is in the way at once.
func preflight(ctx context.Context, p *workflow.Progress, checks ...check) error {
	var problems []error
	for _, c := range checks {
		problems = append(problems, c(ctx, p)...)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &PreflightError{Problems: problems}
}

// checkVersions compares this Drover with that of the plane.
func (w *Workload) checkVersions(ctx context.Context, p *workflow.Progress) []error {
	if w.SkipSkew {
		p.Note("the version of the management plane is not checked, as you asked")
		return nil
	}
	plane, err := planeVersion(ctx, w.plane)
	switch {
	case err != nil:
		return []error{err}
	case plane == "":
		p.Note("the version of the management plane is not yours to see, and was not checked")
		return nil
	}
	if err := checkSkew(w.version(), plane); err != nil {
		return []error{err}
	}
	return nil
}

// checkName makes sure that no other cluster has the name: names are unique over all namespaces.
func (w *Workload) checkName(ctx context.Context, p *workflow.Progress) []error {
	key := w.key()
	all := &anywherev1.ClusterList{}
	err := w.plane.Client.List(ctx, all)
	if apierrors.IsForbidden(err) {
		err = w.plane.Client.List(ctx, all, client.InNamespace(key.Namespace))
	}
	if err != nil {
		return []error{fmt.Errorf("looking for clusters of that name: %w", err)}
	}
	mine := false
	for i := range all.Items {
		c := &all.Items[i]
		switch {
		case c.Name != key.Name:
		case c.Namespace != key.Namespace:
			return []error{fmt.Errorf("cluster name %q already exists in namespace %q, and names are unique on a management plane: choose another", c.Name, c.Namespace)}
		case !p.Resumed():
			return []error{fmt.Errorf("cluster %q already exists in namespace %q: change it with `drover upgrade cluster -f SPEC`, or choose another name", c.Name, c.Namespace)}
		case !c.DeletionTimestamp.IsZero():
			return []error{fmt.Errorf("cluster %q is being deleted: wait until it is gone", c.Name)}
		default:
			mine = true
		}
	}
	if mine {
		return nil
	}
	return w.checkUnmanaged(ctx, p)
}

// checkUnmanaged makes sure that no cluster of Cluster API, that nobody here describes, has the name.
func (w *Workload) checkUnmanaged(ctx context.Context, p *workflow.Progress) []error {
	key := client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: w.Config.Cluster.Name}
	err := w.plane.Client.Get(ctx, key, &clusterv1.Cluster{})
	if err == nil && !p.Resumed() {
		return []error{fmt.Errorf("cluster name %q already exists: Cluster API has a cluster of that name in namespace %q; choose another", key.Name, key.Namespace)}
	}
	return nil // Who may not see it hears of it from the controller.
}

// checkFree makes sure that the other objects of the spec are not somebody else's.
func (w *Workload) checkFree(ctx context.Context, p *workflow.Progress) []error {
	if p.Resumed() {
		return nil
	}
	var problems []error
	for _, o := range w.Config.Objects() {
		if o == client.Object(w.Config.Cluster) {
			continue
		}
		kind := kindOf(w.plane.Client, o)
		there := o.DeepCopyObject().(client.Object) // A copy of an object is one.
		switch err := w.plane.Client.Get(ctx, client.ObjectKeyFromObject(o), there); {
		case err == nil:
			problems = append(problems, fmt.Errorf("%s %q already exists in namespace %q: give it another name, or delete it if nobody needs it", kind, o.GetName(), o.GetNamespace()))
		case !apierrors.IsNotFound(err):
			problems = append(problems, fmt.Errorf("reading %s %q: %w", kind, o.GetName(), err))
		}
	}
	return problems
}

// checkAdmitted has the plane judge all objects without keeping them: rules, rights and webhooks.
func (w *Workload) checkAdmitted(ctx context.Context, p *workflow.Progress) []error {
	_, problems := w.rehearse(ctx, p)
	return problems
}

// rehearse applies all objects without keeping them, and returns what they would become.
func (w *Workload) rehearse(ctx context.Context, p *workflow.Progress) ([]*unstructured.Unstructured, []error) {
	dry := client.NewDryRunClient(w.plane.Client)
	var became []*unstructured.Unstructured
	var problems []error
	for _, o := range w.Config.Objects() {
		u, err := apply(ctx, dry, o)
		switch {
		case apierrors.IsNotFound(err):
			p.Note("namespace %q is not there yet and will be made", o.GetNamespace())
			return became, problems
		case err != nil:
			problems = append(problems, err)
		default:
			became = append(became, u)
		}
	}
	return became, problems
}

// checkSpec makes sure that the spec keeps all rules. Nothing else is looked at before it does.
func checkSpec(c *spec.Config, p *workflow.Progress) error {
	if err := spec.Validate(c).Err(); err != nil {
		return err
	}
	for _, ignored := range c.Ignored {
		p.Note("%s in the spec is none of Drover's kinds and is left alone", ignored)
	}
	return nil
}
