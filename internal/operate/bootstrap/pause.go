package bootstrap

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/model/owner"
)

// PausedForMove is the annotation of objects that were paused for a move, with the name of their
// cluster. It moves along, so that the destination knows what to resume.
const PausedForMove = "management.drover.dev/paused-for-move"

// RestoredAnnotation marks a Cluster API Cluster all of whose objects were restored from a
// backup, with its name. Resuming removes it.
const RestoredAnnotation = "management.drover.dev/restored"

// pausable is an object with the functions that pause and resume it.
type pausable struct {
	client.Object

	paused     bool
	set, unset func()
}

func pausableCluster(c *clusterv1.Cluster) pausable {
	return pausable{
		c, ptr.Deref(c.Spec.Paused, false),
		func() { c.Spec.Paused = ptr.To(true) }, func() { c.Spec.Paused = nil },
	}
}

// byAnnotation is for kinds that an annotation pauses.
func byAnnotation(obj client.Object, key, value string) pausable {
	_, paused := obj.GetAnnotations()[key]
	return pausable{obj, paused, func() { annotate(obj, key, value) }, func() {
		all := obj.GetAnnotations()
		delete(all, key)
		obj.SetAnnotations(all)
	}}
}

func annotate(obj client.Object, key, value string) {
	all := obj.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	obj.SetAnnotations(all)
}

// pause pauses a cluster: first what changes its objects, then what changes its machines.
func pause(ctx context.Context, c client.Client, key types.NamespacedName) error {
	all, err := listPausable(ctx, c, key.Name)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.paused || p.GetObjectKind().GroupVersionKind().Group == clusterv1.GroupVersion.Group && p.GetNamespace() != key.Namespace {
			continue
		}
		err := change(ctx, c, p, func() {
			p.set()
			annotate(p.Object, PausedForMove, key.Name)
		})
		if err != nil {
			return fmt.Errorf("pausing: %w", err)
		}
	}
	return nil
}

// keepIdentity records the UID of a cluster on the cluster, so that it still owns its objects on
// the destination. Webhooks of an earlier version did not.
func keepIdentity(ctx context.Context, c client.Client, name string) error {
	ours, err := listClusters(ctx, c)
	if err != nil {
		return err
	}
	for i := range ours.Items {
		u := &ours.Items[i]
		if u.GetName() != name || u.GetAnnotations()[anywherev1.ClusterUIDAnnotation] != "" {
			continue
		}
		uid := string(u.GetUID())
		if err := change(ctx, c, pausable{Object: u}, func() { annotate(u, anywherev1.ClusterUIDAnnotation, uid) }); err != nil {
			return fmt.Errorf("keeping the identity: %w", err)
		}
	}
	return nil
}

// resume resumes what pause paused, in the opposite order.
func resume(ctx context.Context, c client.Client, name string) error {
	all, err := listPausable(ctx, c, name)
	if err != nil {
		return err
	}
	for i := len(all) - 1; i >= 0; i-- {
		p := all[i]
		if p.GetAnnotations()[PausedForMove] != name {
			continue
		}
		err := change(ctx, c, p, func() {
			p.unset()
			marks := p.GetAnnotations()
			delete(marks, PausedForMove)
			delete(marks, RestoredAnnotation)
			p.SetAnnotations(marks)
		})
		if err != nil {
			return fmt.Errorf("resuming: %w", err)
		}
	}
	return nil
}

// Hold is why a cluster is paused.
type Hold string

// Reasons why Resume may be called, or not.
const (
	// NotHeld means that neither a move nor a restore paused the cluster.
	NotHeld Hold = ""
	// Unfinished means that a move or a restore that did not end paused it: the cluster may be
	// incomplete here, or managed elsewhere.
	Unfinished Hold = "Unfinished"
	// Restored means that it was restored completely, and nobody else manages it.
	Restored Hold = "Restored"
)

// HoldOf returns why a cluster is paused.
func HoldOf(ctx context.Context, at *rest.Config, name string) (Hold, error) {
	c, err := newClient(at)
	if err != nil {
		return NotHeld, err
	}
	all, err := listPausable(ctx, c, name)
	if err != nil {
		return NotHeld, err
	}
	hold := NotHeld
	for _, p := range all {
		if marks := p.GetAnnotations(); marks[PausedForMove] == name {
			if marks[RestoredAnnotation] == name {
				return Restored, nil
			}
			hold = Unfinished
		}
	}
	return hold, nil
}

// change applies edit to an object in one request.
func change(ctx context.Context, c client.Client, p pausable, edit func()) error {
	before, ok := p.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying a %T: not an object", p.Object)
	}
	edit()
	if err := c.Patch(ctx, p.Object, client.MergeFrom(before), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("%s %q: %w", p.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(p), err)
	}
	return nil
}

// listPausable lists all of a cluster that can be paused, the Cluster API Cluster last.
func listPausable(ctx context.Context, c client.Client, name string) ([]pausable, error) {
	var all []pausable
	ours, err := listClusters(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range ours.Items {
		if u := &ours.Items[i]; u.GetName() == name {
			all = append(all, byAnnotation(u, anywherev1.PausedAnnotation, "true"))
		}
	}
	packages, err := listPackages(ctx, c, name)
	if err != nil {
		return nil, err
	}
	all = append(all, packages...)
	clusters := &clusterv1.ClusterList{}
	if err := c.List(ctx, clusters); err != nil {
		return nil, err
	}
	for i := range clusters.Items {
		if cluster := &clusters.Items[i]; cluster.Name == name {
			cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
			all = append(all, pausableCluster(cluster))
		}
	}
	return all, nil
}

// listPackages lists the Packages of a cluster and its PackageBundleController.
func listPackages(ctx context.Context, c client.Client, name string) ([]pausable, error) {
	var all []pausable
	controllers := &unstructured.UnstructuredList{}
	controllers.SetGroupVersionKind(packagesv1.GroupVersion.WithKind("PackageBundleControllerList"))
	if err := c.List(ctx, controllers, client.InNamespace(packagesv1.Namespace)); err != nil {
		return nil, err
	}
	tenants := map[string]string{}
	for i := range controllers.Items {
		u := &controllers.Items[i]
		tenants[u.GetName()] = owner.Users(u)
		if u.GetName() == name {
			all = append(all, byAnnotation(u, clusterv1.PausedAnnotation, ""))
		}
	}
	packages := &unstructured.UnstructuredList{}
	packages.SetGroupVersionKind(packagesv1.GroupVersion.WithKind("PackageList"))
	if err := c.List(ctx, packages); err != nil {
		return nil, err
	}
	for i := range packages.Items {
		u := &packages.Items[i]
		if packageCluster(u, tenants) == name {
			all = append(all, byAnnotation(u, clusterv1.PausedAnnotation, ""))
		}
	}
	return all, nil
}
