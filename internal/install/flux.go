package install

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/config"
)

// allDefinitions selects every CRD: those that somebody else installed have no label of ours.
var allDefinitions = metav1.ListOptions{}

// ForeignError means that a cluster has a Flux that somebody else installed. Drover never changes
// it.
type ForeignError struct {
	// Object belongs to that Flux.
	Object string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s was not installed by Drover, which never replaces another Flux: uninstall that one, or use it without --gitops", e.Object)
}

// ApplyFlux installs or upgrades the API of Flux: namespace, CRDs and the roles of its controllers,
// and finally More: their Deployments, if they run in the cluster. It returns when every CRD is
// served. If somebody else installed Flux, it changes nothing and returns *ForeignError; if a newer
// Drover did, *NewerError.
func ApplyFlux(ctx context.Context, cfg *rest.Config, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	objects, err := o.fluxObjects()
	if err != nil {
		return err
	}
	c, err := newCluster(cfg, allDefinitions)
	if err != nil {
		return err
	}
	installed, err := c.installed(ctx, objects)
	if err != nil {
		return err
	}
	if err := checkOwned(objects, installed); err != nil {
		return err
	}
	stale, err := outdated(objects, installed, o.Version)
	if err != nil {
		return err
	}
	return c.write(ctx, objects, stale, o)
}

func (o Options) fluxObjects() ([]object, error) {
	manifests := slices.Concat([]config.Manifest{config.FluxNamespaceManifest()}, config.FluxCRDs(), config.FluxRBAC())
	objects := make([]object, 0, len(manifests)+len(o.More))
	for i, m := range append(manifests, o.More...) {
		obj, err := o.identify(m)
		if err != nil {
			return nil, err
		}
		obj.last = i >= len(manifests)
		objects = append(objects, obj)
	}
	return objects, nil
}

// checkOwned rejects objects that somebody else wrote. A namespace alone is not an installation:
// people create it for credentials before they turn Flux on.
func checkOwned(objects []object, installed installation) error {
	for _, obj := range objects {
		if meta := installed[obj.String()]; meta != nil && obj.kind != namespaces && foreign(meta) {
			return &ForeignError{Object: obj.String()}
		}
	}
	return nil
}

// foreign reports whether an object lacks our annotation, or somebody else applies it, too.
func foreign(meta *metav1.PartialObjectMetadata) bool {
	return meta.Annotations[HashAnnotation] == "" || slices.ContainsFunc(meta.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Operation == metav1.ManagedFieldsOperationApply && f.Manager != fieldManager
	})
}
