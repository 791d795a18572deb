package install

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFluxOfSomebodyElseIsRejected(t *testing.T) {
	crd := object{kind: definitionsKind, name: "gitrepositories.source.toolkit.fluxcd.io"}
	namespace := object{kind: namespaces, name: "flux-system"}
	ours := map[string]string{HashAnnotation: "1234"}
	applied := func(manager string) []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{
			{Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply},
			{Manager: "kube-apiserver", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status"},
			{Manager: manager, Operation: metav1.ManagedFieldsOperationApply},
		}
	}
	tests := []struct {
		name    string
		object  object
		meta    metav1.ObjectMeta
		foreign bool
	}{
		{"our CRD", crd, metav1.ObjectMeta{Annotations: ours, ManagedFields: applied(fieldManager)}, false},
		{"a CRD of kubectl", crd, metav1.ObjectMeta{}, true},
		{"our CRD that upstream's command line applied later", crd, metav1.ObjectMeta{Annotations: ours, ManagedFields: applied("flux")}, true},
		{"a namespace that somebody created", namespace, metav1.ObjectMeta{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkOwned([]object{crd, namespace}, installation{tt.object.String(): {ObjectMeta: tt.meta}})
			var foreign *ForeignError
			if got := errors.As(err, &foreign); got != tt.foreign {
				t.Fatalf("got %v, want a ForeignError: %t", err, tt.foreign)
			}
			if tt.foreign && foreign.Object != tt.object.String() {
				t.Errorf("the error names %q", foreign.Object)
			}
		})
	}
}

func TestFluxObjectsBeginWithTheNamespace(t *testing.T) {
	objects, err := Options{}.fluxObjects()
	if err != nil {
		t.Fatal(err)
	}
	if objects[0].kind != namespaces || objects[0].name != "flux-system" {
		t.Errorf("the first object is %s", objects[0])
	}
	definitions := 0
	for _, obj := range objects {
		if obj.kind == definitionsKind {
			definitions++
		}
	}
	if definitions != 7 {
		t.Errorf("%d CRDs, want six sources and Kustomization", definitions)
	}
}
