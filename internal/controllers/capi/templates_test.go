package capi

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestDeletedTemplatesOfOldMachineSetsAreEmpty(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, AddToScheme(scheme))
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}}
	d.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfigTemplate", Name: "new"}
	c := formerTemplates{fake.NewClientBuilder().WithScheme(scheme).WithObjects(d).Build()}
	get := func(kind, name string) (*unstructured.Unstructured, error) {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
		o.SetKind(kind)
		return o, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, o)
	}
	if o, err := get("KubeadmConfigTemplate", "old"); err != nil || o.GetName() != "old" || o.Object["spec"] != nil {
		t.Errorf("a former template: got %v, %v", o, err)
	}
	if _, err := get("KubeadmConfigTemplate", "new"); !apierrors.IsNotFound(err) {
		t.Errorf("the template of a MachineDeployment: got %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, &clusterv1.MachineSet{}); !apierrors.IsNotFound(err) {
		t.Errorf("another kind: got %v", err)
	}
}
