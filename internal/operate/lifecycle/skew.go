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
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// clusterDefinition has the version of the Drover that installed it in an annotation.
const clusterDefinition = "clusters.anywhere.eks.amazonaws.com"

// SkewError means that the versions of this Drover and of a management plane don't work together.
type SkewError struct{ Own, Plane, Problem, Remedy string }

func (e *SkewError) Error() string {
	return fmt.Sprintf("this is Drover %s and the management plane has Drover %s: %s; %s (nothing was changed)", e.Own, e.Plane, e.Problem, e.Remedy)
}

// checkSkew rejects versions that don't work together. Drover supports management planes of its own
// minor version and of the previous one. Builds that aren't releases promise nothing to each other,
// so an older one is rejected within a minor version too. A version that can't be parsed isn't
// compared.
func checkSkew(own, plane string) error {
	ours, ourErr := utilversion.ParseSemantic(own)
	theirs, theirErr := utilversion.ParseSemantic(plane)
	if ourErr != nil || theirErr != nil {
		return nil //nolint:nilerr // such versions aren't compared
	}
	released := version.Released(own) && version.Released(plane)
	switch {
	case ours.Major() < theirs.Major() || ours.Major() == theirs.Major() && ours.Minor() < theirs.Minor(),
		!released && version.Older(own, plane):
		return &SkewError{own, plane, "an older drover is not supported", "use Drover " + plane}
	case ours.Major() != theirs.Major() || ours.Minor() > theirs.Minor()+1:
		return &SkewError{own, plane, "only the previous minor version is supported", "upgrade the management cluster one minor version at a time first, or use Drover " + plane}
	}
	return nil
}

// planeVersion returns the version of Drover on a management plane, or "" if the user may not read
// it. The manager publishes it; an older one only annotated its definitions, which not everyone may
// read.
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

// checkOffered rejects versions of Kubernetes that the management plane does not offer. An older
// Drover does not publish them.
func (w *Workload) checkOffered(ctx context.Context, _ *phase.Progress) []error {
	runs, err := about.Read(ctx, w.plane.Client)
	if err != nil {
		return nil // The controller reports it.
	}
	minors := []string{w.Config.Cluster.Spec.KubernetesVersion}
	for _, g := range w.Config.Cluster.Spec.WorkerNodeGroupConfigurations {
		minors = append(minors, ptr.Deref(g.KubernetesVersion, ""))
	}
	slices.Sort(minors)
	var problems []error
	for _, minor := range slices.Compact(minors) {
		if minor != "" && !runs.Has(minor) {
			problems = append(problems, fmt.Errorf("the management plane (Drover %s) does not offer Kubernetes %s: choose one of %s, or upgrade the management cluster",
				runs.Version, minor, strings.Join(runs.Kubernetes, ", ")))
		}
	}
	return problems
}
