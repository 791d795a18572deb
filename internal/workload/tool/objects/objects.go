// Package objects is what package tools have in common once a package has become objects: where they belong, in which order they are
// written, how they differ, whether they are ready, and what may be said of them in a message.
//
// It knows neither packages nor records, and never decides whose an object is. Start with Object.
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

// CRDKind is that of objects that define kinds.
const CRDKind = "CustomResourceDefinition"

// Object is one of an installation, with where it is to be found once its kind is known.
type Object struct {
	*unstructured.Unstructured
	Resource schema.GroupVersionResource
}

// One is an Object, or what a tool makes of it.
type One interface {
	GetKind() string
	GetName() string
	GroupVersionKind() schema.GroupVersionKind
	UnstructuredContent() map[string]any
	Title() string
	Locate(mapper meta.RESTMapper, namespace string) error
	Located() schema.GroupVersionResource
}

// Located is where objects of its kind are, empty if that is not known.
func (o *Object) Located() schema.GroupVersionResource { return o.Resource }

// Known says that the object was located.
func (o *Object) Known() bool { return o.Resource.Resource != "" }

// Identity is the same for all versions of a kind.
func (o *Object) Identity() string {
	gvk := o.GroupVersionKind()
	return strings.Join([]string{gvk.Group, gvk.Kind, o.GetNamespace(), o.GetName()}, "/")
}

// Title is how messages name an object.
func (o *Object) Title() string {
	if o.GetNamespace() == "" {
		return fmt.Sprintf("%s %q", o.GetKind(), o.GetName())
	}
	return fmt.Sprintf("%s %q", o.GetKind(), o.GetNamespace()+"/"+o.GetName())
}

// Named is the object in the terms of tools.
func (o *Object) Named() tool.Object {
	return tool.Object{GroupVersionKind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Locate finds out where an object belongs. It fails if its kind is not there.
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

// LocateAll locates objects, except for those whose kinds come with them.
func LocateAll[T One](objects []T, mapper meta.RESTMapper, namespace string) error {
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

// LocateSome is for objects to be removed: what is of a kind that is gone is gone as well.
func LocateSome[T One](objects []T, mapper meta.RESTMapper, namespace string) ([]T, error) {
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

func definedKinds[T One](objects []T) map[schema.GroupKind]bool {
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

// order is that in which kinds are written: what others need comes first. Kinds that are not named come after workloads, and what can
// refuse or divert requests comes last.
var order = []string{
	"Namespace", CRDKind, "PriorityClass", "StorageClass", "IngressClass", "RuntimeClass", "ResourceQuota", "LimitRange", "ServiceAccount",
	"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "Service",
	"NetworkPolicy", "PodDisruptionBudget", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Pod", "Job", "CronJob",
	"HorizontalPodAutoscaler", "Ingress",
}

var last = []string{"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

func place(kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	if i := slices.Index(last, kind); i >= 0 {
		return len(order) + 1 + i
	}
	return len(order)
}

// Kinded has a kind.
type Kinded interface{ GetKind() string }

// Sort puts objects into the order that they are written in. Those of a kind stay in theirs.
func Sort[T Kinded](objects []T) {
	slices.SortStableFunc(objects, func(a, b T) int {
		if d := place(a.GetKind()) - place(b.GetKind()); d != 0 {
			return d
		}
		return strings.Compare(a.GetKind(), b.GetKind())
	})
}

// Custom says that a kind is none of those that Kubernetes comes with.
func Custom(kind string) bool { return place(kind) == len(order) }

// Groups are runs of the same kind: what is in one does not wait for the rest of it.
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
