// Package objects implements what package tools have in common once a package is rendered: mapping
// objects to resources, ordering, writing, comparing and checking them, and redacting errors.
//
// It knows neither packages nor records, and never decides who owns an object. Start with Object.
package objects

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/internal/workload/tool"
)

// CRDKind is the kind of custom resource definitions.
const CRDKind = "CustomResourceDefinition"

// Object is an object of an installation, with its resource once that is known.
type Object struct {
	*unstructured.Unstructured
	Resource schema.GroupVersionResource
}

// Item is an Object, or a type of a tool that embeds one.
type Item interface {
	GetKind() string
	GetName() string
	GroupVersionKind() schema.GroupVersionKind
	UnstructuredContent() map[string]any
	Title() string
	Locate(mapper meta.RESTMapper, namespace string) error
	Located() schema.GroupVersionResource
}

// Located returns the resource of the object, or an empty one if it isn't known.
func (o *Object) Located() schema.GroupVersionResource { return o.Resource }

// Known reports whether the resource of the object is known.
func (o *Object) Known() bool { return o.Resource.Resource != "" }

// Identity returns a key that is the same for all versions of a kind.
func (o *Object) Identity() string {
	gvk := o.GroupVersionKind()
	return strings.Join([]string{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}, "/")
}

// Title returns the name of the object for messages.
func (o *Object) Title() string {
	if o.GetNamespace() == "" {
		return fmt.Sprintf("%s %q", o.GetKind(), o.GetName())
	}
	return fmt.Sprintf("%s %q", o.GetKind(), o.GetNamespace()+"/"+o.GetName())
}

// Named returns the identity of the object for other packages.
func (o *Object) Named() tool.Object {
	return tool.Object{GroupVersionKind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Locate looks up the resource of an object and sets its namespace. It fails if the kind doesn't
// exist.
func (o *Object) Locate(mapper meta.RESTMapper, namespace string) error {
	gvk := o.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("finding kind %s: %w", gvk, err)
	}
	o.Resource = mapping.Resource
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(namespace)
	}
	return nil
}

// LocateAll locates objects, except those whose kinds are defined among them.
func LocateAll[T Item](objects []T, mapper meta.RESTMapper, namespace string) error {
	coming := definedKinds(objects)
	for _, o := range objects {
		err := o.Locate(mapper, namespace)
		if meta.IsNoMatchError(err) && coming[o.GroupVersionKind().GroupKind()] {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// LocateSome returns the objects whose kinds exist, for removal: objects of a deleted kind are gone
// too.
func LocateSome[T Item](objects []T, mapper meta.RESTMapper, namespace string) ([]T, error) {
	var found []T
	for _, o := range objects {
		switch err := o.Locate(mapper, namespace); {
		case err == nil:
			found = append(found, o)
		case !meta.IsNoMatchError(err):
			return nil, err
		}
	}
	return found, nil
}

func definedKinds[T Item](objects []T) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GetKind() == CRDKind {
			group, _, _ := unstructured.NestedString(o.UnstructuredContent(), "spec", "group")
			kind, _, _ := unstructured.NestedString(o.UnstructuredContent(), "spec", "names", "kind")
			kinds[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return kinds
}

// order is the order in which kinds are written: dependencies first. Kinds that are not listed
// follow workloads, and what can reject or divert requests comes last.
var order = []string{
	"Namespace", CRDKind, "PriorityClass", "StorageClass", "IngressClass", "RuntimeClass", "ResourceQuota", "LimitRange", "ServiceAccount",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "Service",
	"NetworkPolicy", "PodDisruptionBudget", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Pod", "Job", "CronJob",
	"HorizontalPodAutoscaler", "Ingress",
}

var last = []string{"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

func rank(kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	if i := slices.Index(last, kind); i >= 0 {
		return len(order) + 1 + i
	}
	return len(order)
}

// Kinded is anything with a kind.
type Kinded interface{ GetKind() string }

// Sort sorts objects into the order in which they are written. It is stable within a kind.
func Sort[T Kinded](objects []T) {
	slices.SortStableFunc(objects, func(a, b T) int {
		if d := rank(a.GetKind()) - rank(b.GetKind()); d != 0 {
			return d
		}
		return strings.Compare(a.GetKind(), b.GetKind())
	})
}

// Custom reports whether a kind is not built into Kubernetes.
func Custom(kind string) bool { return rank(kind) == len(order) }

// Groups returns runs of the same kind, which can be written in parallel.
func Groups[T Kinded](objects []T) [][]T {
	var out [][]T
	for i, o := range objects {
		if i == 0 || o.GetKind() != objects[i-1].GetKind() {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], o)
	}
	return out
}
