package admission

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/demand"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Capacity checks whether there are machines.
type Capacity interface {
	// Check returns the machines that are not available to the owner of credentials. New Clusters
	// come after those that wait.
	Check(ctx context.Context, credentials string, machines []demand.Machines, isNew bool) ([]demand.Machines, error)
}

// capacityWarnings warns if there are not enough machines for a new or changed Cluster. The request
// is accepted all the same, because machines may be free by the time they are ordered. An update
// that needs no machines asks nobody.
func (r *clusterRules) capacityWarnings(ctx context.Context, was, is *anywherev1.Cluster) admission.Warnings {
	if r.Capacity == nil || is.IsPaused() {
		return nil
	}
	asked, err := r.asked(ctx, was, is)
	if err != nil || asked == nil {
		return r.unchecked(ctx, err)
	}
	missing, err := r.Capacity.Check(ctx, asked.Credentials, asked.Machines, was == nil)
	if err != nil || len(missing) == 0 {
		return r.unchecked(ctx, err)
	}
	return admission.Warnings{demand.Warning(missing)}
}

// unchecked logs why there is no answer. The user learns it from the objects that need machines.
func (r *clusterRules) unchecked(ctx context.Context, err error) admission.Warnings {
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Could not check the capacity for machines", "error", err.Error())
	}
	return nil
}

// asked returns the machines to check, or nil. A command that submits a dry run says what it needs,
// because objects that don't exist yet can't be read.
func (r *clusterRules) asked(ctx context.Context, was, is *anywherev1.Cluster) (*demand.Check, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	if text := is.Annotations[anywherev1.CapacityCheckAnnotation]; text != "" && ptr.Deref(request.DryRun, false) {
		return r.permitted(ctx, is, text)
	}
	config, err := spec.Gather(ctx, r.live, is)
	if err != nil && !isLocalWithout(is, err) {
		return nil, err
	}
	if was == nil {
		return &demand.Check{Credentials: demand.Credentials(config), Machines: demand.Of(config)}, nil
	}
	before := *config
	before.Cluster = was
	return &demand.Check{Credentials: demand.Credentials(config), Machines: demand.Added(&before, config)}, nil
}

// isLocalWithout reports whether a Cluster of local machines only lacks objects. They say nothing
// about machines, and "kubectl apply" of a spec creates them after the Cluster.
func isLocalWithout(c *anywherev1.Cluster, err error) bool {
	var missing *spec.MissingError
	return errors.As(err, &missing) && c.Spec.DatacenterRef.Kind == anywherev1.DockerDatacenterConfigKind
}

// permitted reads what a command asks for. It says nothing about credentials that clusters of the
// namespace may not use.
func (r *clusterRules) permitted(ctx context.Context, c *anywherev1.Cluster, text string) (*demand.Check, error) {
	check := &demand.Check{}
	if err := json.Unmarshal([]byte(text), check); err != nil {
		return nil, err
	}
	problem, err := r.credentials.deny(ctx, c, check.Credentials)
	if err != nil || problem != "" || !check.IsValid() {
		return nil, err
	}
	return check, nil
}
