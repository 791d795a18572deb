package view

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// rewatch is how long a watch that could not be begun waits.
const rewatch = time.Second

// Create makes objects that are not there yet. All are tried before any is made.
func (p *Plane) Create(ctx context.Context, objects ...*unstructured.Unstructured) error {
	return each(ctx, p.client, objects, func(c client.Client, o *unstructured.Unstructured) error { return c.Create(ctx, o) })
}

// Apply makes or changes objects. All are tried before any is changed.
func (p *Plane) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	return each(ctx, p.client, objects, func(c client.Client, o *unstructured.Unstructured) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(fieldManager), client.ForceOwnership)
	})
}

// each does it dry with all objects first, so that what is refused is refused before anything changes.
func each(
	ctx context.Context, c client.Client, objects []*unstructured.Unstructured, do func(client.Client, *unstructured.Unstructured) error,
) error {
	for _, through := range []client.Client{client.NewDryRunClient(c), c} {
		for _, o := range objects {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := do(through, o.DeepCopy()); err != nil {
				return explain(o, err)
			}
		}
	}
	return nil
}

// explain says what was refused, and why, without the API server's frame around it.
func explain(o *unstructured.Unstructured, err error) error {
	if apierrors.IsNotFound(err) && o.GetKind() == "Package" {
		cluster := strings.TrimPrefix(o.GetNamespace(), packagesv1.NamespacePrefix)
		return fmt.Errorf("namespace %q is not there: does cluster %q have a PackageBundleController? (%w)", o.GetNamespace(), cluster, err)
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if _, reason, denied := strings.Cut(status.Status().Message, "denied the request: "); denied {
			return fmt.Errorf("%s %q is refused: %s", o.GetKind(), o.GetName(), strings.TrimSpace(reason))
		}
	}
	return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
}

// Delete deletes packages.
func (p *Plane) Delete(ctx context.Context, all []packagesv1.Package) error {
	var failed []error
	for i := range all {
		if err := p.client.Delete(ctx, &all[i], client.Preconditions{UID: &all[i].UID}); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, fmt.Errorf("deleting package %q: %w", all[i].Name, err))
		}
	}
	return errors.Join(failed...)
}

// Activate makes a cluster use another bundle. Nothing else of its PackageBundleController is touched.
func (p *Plane) Activate(ctx context.Context, cluster, name string) error {
	controller, err := p.Controller(ctx, cluster)
	if err != nil {
		return err
	}
	before := controller.DeepCopy()
	controller.Spec.ActiveBundle = name
	if err := p.client.Patch(ctx, controller, client.MergeFrom(before)); err != nil {
		u := &unstructured.Unstructured{}
		u.SetKind("PackageBundleController")
		u.SetName(cluster)
		return explain(u, err)
	}
	return nil
}

// Await tells the packages of a cluster, at first and after each change, until done says that it is enough.
func (p *Plane) Await(ctx context.Context, cluster string, done func([]packagesv1.Package) bool) error {
	changes := make(chan struct{}, 1)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for _, namespace := range []string{packagesv1.NamespacePrefix + cluster, packagesv1.Namespace} {
		go p.notify(watching, namespace, changes)
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

// notify tells that something changed, until ctx ends. A watch that ends is begun again, which counts as a change.
func (p *Plane) notify(ctx context.Context, namespace string, changes chan<- struct{}) {
	tell := func() {
		select {
		case changes <- struct{}{}:
		default:
		}
	}
	for ctx.Err() == nil {
		watch, err := p.client.Watch(ctx, &packagesv1.PackageList{}, client.InNamespace(namespace))
		tell()
		if apierrors.IsForbidden(err) {
			return
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(rewatch):
			}
			continue
		}
		for range watch.ResultChan() {
			tell()
		}
		watch.Stop()
	}
}
