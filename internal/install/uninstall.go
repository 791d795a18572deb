package install

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/config"
)

// DeleteFlux deletes the controllers that ApplyFlux installed with More, their roles and accounts.
// The namespace and the CRDs stay, because objects of others may be there. If somebody else
// installed Flux, it changes nothing and returns *ForeignError.
func DeleteFlux(ctx context.Context, cfg *rest.Config, more []config.Manifest) error {
	objects, err := Options{More: more}.fluxObjects()
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
	for i := len(objects) - 1; i >= 0; i-- { // Deployments first.
		obj := objects[i]
		if obj.kind == namespaces || obj.kind == definitionsKind || installed[obj.String()] == nil {
			continue
		}
		err := c.dynamic.Resource(obj.kind).Namespace(obj.namespace).Delete(ctx, obj.name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %q: %w", obj, err)
		}
	}
	return nil
}
