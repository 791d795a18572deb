package capi

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// formerTemplates is the client of the MachineDeployment reconciler. With in-place updates enabled,
// that reads the templates of old MachineSets before it asks whether it may update their machines,
// and fails without them. Users may delete templates that no MachineDeployment refers to any more,
// so a missing one is empty, from which no machine can be updated.
type formerTemplates struct{ client.Client }

// Get implements client.Reader.
func (c formerTemplates) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	err := c.Client.Get(ctx, key, into, o...)
	template, is := into.(*unstructured.Unstructured)
	if !is || !apierrors.IsNotFound(err) {
		return err
	}
	all := &clusterv1.MachineDeploymentList{}
	if err := c.List(ctx, all, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range all.Items {
		s := all.Items[i].Spec.Template.Spec
		for _, ref := range []clusterv1.ContractVersionedObjectReference{s.InfrastructureRef, s.Bootstrap.ConfigRef} {
			if ref.Name == key.Name && ref.Kind == template.GetKind() {
				return err
			}
		}
	}
	template.SetNamespace(key.Namespace)
	template.SetName(key.Name)
	return nil
}
