package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/clusters/view"
	"github.com/drover-dev/drover/internal/install"
)

// clusterDefinition carries the version of the Drover that installed it.
const clusterDefinition = "clusters.anywhere.eks.amazonaws.com"

// SkewError means that this Drover and that of a management plane are too far apart.
type SkewError struct{ Own, Plane, Problem, Remedy string }

func (e *SkewError) Error() string {
	return fmt.Sprintf("this is Drover %s, the management plane has %s: %s; %s. Nothing was changed", e.Own, e.Plane, e.Problem, e.Remedy)
}

// checkSkew says whether a command line may work on a management plane: one of its own minor version, or of the one before. Versions that
// are no releases are not compared.
func checkSkew(own, plane string) error {
	ours, theirs := released(own), released(plane)
	switch {
	case ours == nil || theirs == nil:
	case ours.Major() < theirs.Major() || ours.Major() == theirs.Major() && ours.Minor() < theirs.Minor():
		return &SkewError{own, plane, "an older command line must not work on it", "use Drover " + plane}
	case ours.Major() != theirs.Major() || ours.Minor() > theirs.Minor()+1:
		return &SkewError{own, plane, "only the minor version before is supported", "upgrade the management cluster one minor version at a time first, or use Drover " + plane}
	}
	return nil
}

// released is the version of a release, nil if it is none.
func released(version string) *utilversion.Version {
	v, err := utilversion.ParseSemantic(version)
	if err != nil || v.Major() == 0 && v.Minor() == 0 && v.Patch() == 0 {
		return nil
	}
	return v
}

// planeVersion is the version of the Drover on a plane, empty if it can't be seen.
func planeVersion(ctx context.Context, plane *view.Plane) (string, error) {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := plane.Client.Get(ctx, client.ObjectKey{Name: clusterDefinition}, definition)
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the version of the management plane: %w", err)
	}
	return definition.Annotations[install.VersionAnnotation], nil
}
