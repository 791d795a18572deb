package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/install/about"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// clusterDefinition carries the version of the Drover that installed it.
const clusterDefinition = "clusters.anywhere.eks.amazonaws.com"

// SkewError means that this Drover and that of a management plane are too far apart.
type SkewError struct{ Own, Plane, Problem, Remedy string }

func (e *SkewError) Error() string {
	return fmt.Sprintf("this is Drover %s, the management plane has %s: %s; %s. Nothing was changed", e.Own, e.Plane, e.Problem, e.Remedy)
}

// checkSkew decides whether a command line may work on a management plane: one of its own minor version, or of the one before. Between
// builds that aren't releases nothing is promised, so an older one is rejected within a minor version too. A version that can't be parsed
// isn't compared.
func checkSkew(own, plane string) error {
	ours, err := utilversion.ParseSemantic(own)
	if err != nil {
		return nil
	}
	theirs, err := utilversion.ParseSemantic(plane)
	if err != nil {
		return nil
	}
	released := version.Released(own) && version.Released(plane)
	switch {
	case ours.Major() < theirs.Major() || ours.Major() == theirs.Major() && ours.Minor() < theirs.Minor(),
		!released && version.Older(own, plane):
		return &SkewError{own, plane, "an older command line must not work on it", "use Drover " + plane}
	case ours.Major() != theirs.Major() || ours.Minor() > theirs.Minor()+1:
		return &SkewError{own, plane, "only the minor version before is supported", "upgrade the management cluster one minor version at a time first, or use Drover " + plane}
	}
	return nil
}

// planeVersion is the version of the Drover on a plane, empty if it can't be seen. What runs there says so itself; an older one has left it
// on its definitions only, which not everybody may read.
func planeVersion(ctx context.Context, plane *inspect.Plane) (string, error) {
	runs, err := about.Read(ctx, plane.Client)
	if err == nil || !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return runs.Version, err
	}
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err = plane.Client.Get(ctx, client.ObjectKey{Name: clusterDefinition}, definition)
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the version of the management plane: %w", err)
	}
	return definition.Annotations[install.VersionAnnotation], nil
}

// checkOffered makes sure that the plane has the versions of Kubernetes that are asked for. A plane of an older Drover does not say.
func (w *Workload) checkOffered(ctx context.Context, _ *workflow.Progress) []error {
	runs, err := about.Read(ctx, w.plane.Client)
	if err != nil {
		return nil // Then the plane judges by itself, as it does anyway.
	}
	minors := []string{w.Config.Cluster.Spec.KubernetesVersion}
	for _, g := range w.Config.Cluster.Spec.WorkerNodeGroupConfigurations {
		minors = append(minors, ptr.Deref(g.KubernetesVersion, ""))
	}
	slices.Sort(minors)
	var problems []error
	for _, minor := range slices.Compact(minors) {
		if minor != "" && !runs.Has(minor) {
			problems = append(problems, fmt.Errorf("the management plane, Drover %s, has no Kubernetes %s, only %s: choose one of these, or have the management cluster upgraded",
				runs.Version, minor, strings.Join(runs.Kubernetes, ", ")))
		}
	}
	return problems
}
