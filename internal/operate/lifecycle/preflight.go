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
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// PreflightError lists every preflight check that failed.
type PreflightError struct{ Problems []error }

func (e *PreflightError) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0].Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d preflight checks failed:", len(e.Problems))
	for _, p := range e.Problems {
		fmt.Fprintf(&out, "\n  - %v", p)
	}
	return out.String()
}

// Unwrap returns the failures, so that callers can match one of them.
func (e *PreflightError) Unwrap() []error { return e.Problems }

// check is a preflight check. It returns every problem that it finds, and changes nothing.
type check func(context.Context, *phase.Progress) []error

// preflight runs all checks, and reports every problem at once.
func preflight(ctx context.Context, p *phase.Progress, checks ...check) error {
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

// checkVersions compares the version of this Drover with that of the management plane.
func (w *Workload) checkVersions(ctx context.Context, p *phase.Progress) []error {
	if w.SkipSkew {
		p.Note("skipping the version check of the management plane")
		return nil
	}
	plane, err := planeVersion(ctx, w.plane)
	switch {
	case err != nil:
		return []error{err}
	case plane == "":
		p.Note("skipping the version check: you may not read the version of the management plane")
		return nil
	}
	if err := checkSkew(w.version(), plane); err != nil {
		return []error{err}
	}
	return nil
}

// checkName rejects a name that another cluster has. Names are unique across namespaces.
func (w *Workload) checkName(ctx context.Context, p *phase.Progress) []error {
	key := w.key()
	all := &anywherev1.ClusterList{}
	err := w.plane.Client.List(ctx, all)
	if apierrors.IsForbidden(err) {
		err = w.plane.Client.List(ctx, all, client.InNamespace(key.Namespace))
	}
	if err != nil {
		return []error{fmt.Errorf("listing clusters: %w", err)}
	}
	mine := false
	for i := range all.Items {
		c := &all.Items[i]
		switch {
		case c.Name != key.Name:
		case c.Namespace != key.Namespace:
			return []error{fmt.Errorf("cluster name %q already exists in namespace %q, and names are unique across namespaces: choose another name", c.Name, c.Namespace)}
		case !p.Resumed():
			return []error{fmt.Errorf("cluster %q already exists in namespace %q: upgrade it with `drover upgrade cluster -f SPEC`, or choose another name", c.Name, c.Namespace)}
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

// checkUnmanaged rejects the name of a Cluster API cluster that Drover does not manage.
func (w *Workload) checkUnmanaged(ctx context.Context, p *phase.Progress) []error {
	key := client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: w.Config.Cluster.Name}
	err := w.plane.Client.Get(ctx, key, &clusterv1.Cluster{})
	if err == nil && !p.Resumed() {
		return []error{fmt.Errorf("cluster name %q already exists: namespace %q has a Cluster API cluster of that name; choose another name", key.Name, key.Namespace)}
	}
	return nil // If the user may not read it, the controller reports it.
}

// checkFree rejects names of objects that exist already.
func (w *Workload) checkFree(ctx context.Context, p *phase.Progress) []error {
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
		case err == nil && isShared(o, there):
		case err == nil:
			problems = append(problems, fmt.Errorf("%s %q already exists in namespace %q: choose another name, or delete it if it is unused", kind, o.GetName(), o.GetNamespace()))
		case !apierrors.IsNotFound(err):
			problems = append(problems, fmt.Errorf("reading %s %q: %w", kind, o.GetName(), err))
		}
	}
	return problems
}

// checkAdmitted submits all objects as a dry run: schema, permissions and webhooks.
func (w *Workload) checkAdmitted(ctx context.Context, p *phase.Progress) []error {
	_, problems := w.dryRun(ctx, p)
	return problems
}

// dryRun applies all objects as a dry run, and returns what they would become.
func (w *Workload) dryRun(ctx context.Context, p *phase.Progress) ([]*unstructured.Unstructured, []error) {
	dry := client.NewDryRunClient(w.plane.Client)
	var became []*unstructured.Unstructured
	var problems []error
	for _, o := range w.Config.Objects() {
		u, err := apply(ctx, dry, o)
		switch {
		case apierrors.IsNotFound(err):
			p.Note("namespace %q does not exist and will be created", o.GetNamespace())
			return became, problems
		case err != nil:
			problems = append(problems, err)
		default:
			became = append(became, u)
		}
	}
	return became, problems
}

// checkSpec validates the spec. It comes before all other checks.
func checkSpec(c *spec.Config, p *phase.Progress) error {
	if err := spec.Validate(c).Err(); err != nil {
		return err
	}
	for _, warning := range c.Warnings {
		p.Note("%s", warning)
	}
	for _, ignored := range c.Ignored {
		p.Note("ignoring %s: not one of Drover's kinds", ignored)
	}
	return nil
}
