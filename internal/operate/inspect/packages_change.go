package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// Create creates objects, after a dry run of all of them.
func (p *Plane) Create(ctx context.Context, objects ...*unstructured.Unstructured) error {
	return each(ctx, p.Client, objects, func(c client.Client, o *unstructured.Unstructured) error { return c.Create(ctx, o) })
}

// Apply creates or updates objects, after a dry run of all of them.
func (p *Plane) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	return each(ctx, p.Client, objects, func(c client.Client, o *unstructured.Unstructured) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(fieldManager), client.ForceOwnership)
	})
}

// each writes objects after a dry run of all of them, so that nothing changes if one is rejected.
func each(
	ctx context.Context, c client.Client, objects []*unstructured.Unstructured, do func(client.Client, *unstructured.Unstructured) error,
) error {
	for _, through := range []client.Client{client.NewDryRunClient(c), c} {
		for _, o := range objects {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := do(through, o.DeepCopy()); err != nil {
				return explainRejection(o, err)
			}
		}
	}
	return nil
}

// explainRejection reduces the error of an API server to the reason of a webhook, and explains a
// missing namespace.
func explainRejection(o *unstructured.Unstructured, err error) error {
	if apierrors.IsNotFound(err) && o.GetKind() == "Package" {
		cluster := strings.TrimPrefix(o.GetNamespace(), packagesv1.NamespacePrefix)
		return fmt.Errorf("namespace %q not found; check that cluster %q has a PackageBundleController: %w", o.GetNamespace(), cluster, err)
	}
	if reason, denied := Rejection(err); denied {
		return fmt.Errorf("%s %q rejected: %s", o.GetKind(), o.GetName(), reason)
	}
	return fmt.Errorf("writing %s %q: %w", o.GetKind(), o.GetName(), err)
}

// Rejection returns the reason of the webhook that rejected an object, without the text that the
// API server adds.
func Rejection(err error) (reason string, denied bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", false
	}
	_, reason, denied = strings.Cut(status.Status().Message, "denied the request: ")
	return strings.TrimSpace(reason), denied
}

// DeletePackages deletes packages.
func (p *Plane) DeletePackages(ctx context.Context, all []packagesv1.Package) error {
	var failed []error
	for i := range all {
		if err := p.Client.Delete(ctx, &all[i], client.Preconditions{UID: &all[i].UID}); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("deleting package %q: %w", all[i].Name, err))
		}
	}
	return errors.Join(failed...)
}

// ActivateBundle sets the active bundle of a cluster.
func (p *Plane) ActivateBundle(ctx context.Context, cluster, name string) error {
	controller, err := p.BundleController(ctx, cluster)
	if err != nil {
		return err
	}
	before := controller.DeepCopy()
	controller.Spec.ActiveBundle = name
	if err := p.Client.Patch(ctx, controller, client.MergeFrom(before)); err != nil {
		u := &unstructured.Unstructured{}
		u.SetKind("PackageBundleController")
		u.SetName(cluster)
		return explainRejection(u, err)
	}
	return nil
}

// AwaitPackages calls done with the packages of a cluster, now and after each change, until it
// returns true.
func (p *Plane) AwaitPackages(ctx context.Context, cluster string, done func([]packagesv1.Package) bool) error {
	changes := make(chan struct{}, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for _, namespace := range []string{packagesv1.NamespacePrefix + cluster, packagesv1.Namespace} {
		go p.notify(watching, changes, &packagesv1.PackageList{}, client.InNamespace(namespace))
	}
	for {
		all, err := p.Packages(ctx, cluster)
		if err != nil {
			return err
		}
		if done(all) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changes:
		}
	}
}
