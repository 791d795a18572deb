package memory

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

func TestObjectsCanBeApplied(t *testing.T) {
	l := newLab(t)
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	first := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	l.start(first)
	maps := dynamic.NewForConfigOrDie(config(first.Addresses[0].IP.String(), ca)).
		Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
	apply := func(version string, data map[string]any) (*unstructured.Unstructured, error) {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
		object.SetName("applied")
		object.SetResourceVersion(version)
		return maps.Apply(t.Context(), "applied", object, metav1.ApplyOptions{FieldManager: "test", Force: true})
	}
	if _, err := apply("1", map[string]any{"a": "1"}); err != nil {
		t.Fatalf("creating: %v", err)
	}
	if _, err := apply("1", map[string]any{"a": "2"}); !apierrors.IsConflict(err) {
		t.Errorf("creating an existing object: got %v, want a conflict", err)
	}
	got, err := apply("", map[string]any{"b": "2"})
	if err != nil {
		t.Fatalf("changing: %v", err)
	}
	data, _, _ := unstructured.NestedStringMap(got.Object, "data")
	if data["a"] != "1" || data["b"] != "2" {
		t.Errorf("data = %v", data)
	}
	if _, err := apply(got.GetResourceVersion(), map[string]any{"b": "3"}); err != nil {
		t.Errorf("changing the current version: got error %v", err)
	}
}
