package helm

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KINDs.test.example.com}
spec:
  group: test.example.com
  names: {kind: KIND, plural: KINDs, singular: KIND, listKind: KINDList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

func definition(kind string) string {
	return strings.NewReplacer("KINDs", kind+"s", "singular: KIND", "singular: "+kind, "KIND", strings.ToUpper(kind[:1])+kind[1:]).Replace(crd)
}

func TestCRDsAreEstablishedBeforeTheirObjects(t *testing.T) {
	tests := map[string]struct {
		kind string
		file string
		set  func(*addonsv1.HelmOptions)
		stay bool
	}{
		"in crds":           {kind: "apple", file: "crds/kind.yaml", stay: true},
		"in templates":      {kind: "berry", file: "templates/kind.yaml"},
		"in crds, included": {kind: "cherry", file: "crds/kind.yaml", set: func(o *addonsv1.HelmOptions) { o.Install.IncludeCRDs = true }},
	}
	b := newBench(t)
	b.sync(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			title := strings.ToUpper(tt.kind[:1]) + tt.kind[1:]
			want := b.want(tt.kind, b.put(t, "1.0.0", map[string]string{
				tt.file:                 definition(tt.kind),
				"templates/object.yaml": "apiVersion: test.example.com/v1\nkind: " + title + "\nmetadata: {name: one}\nspec: {size: 1}\n",
			}))
			if tt.set != nil {
				tt.set(&want.Options)
			}
			state := b.mustApply(t, want)
			objects := b.cluster.Dynamic().Resource(schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: tt.kind + "s"})
			if _, err := objects.Namespace(b.namespace).Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			b.observed(t, want, state)
			other := b.want(tt.kind+"-other", b.put(t, "2.0.0", map[string]string{
				"templates/object.yaml": "apiVersion: test.example.com/v1\nkind: " + title + "\nmetadata: {name: one}\nspec: {size: 2}\n",
			}))
			if _, err := b.Apply(t.Context(), b.cluster, other); !isTerminal(err) || !strings.Contains(err.Error(), "owned by release") {
				t.Errorf("error %v, want a terminal one that names the owner", err)
			}
			if err := b.Remove(t.Context(), b.cluster, want); err != nil {
				t.Fatal(err)
			}
			kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
			live, err := b.cluster.Dynamic().Resource(kinds).Get(t.Context(), tt.kind+"s.test.example.com", metav1.GetOptions{})
			if gone := apierrors.IsNotFound(err) || err == nil && live.GetDeletionTimestamp() != nil; gone == tt.stay {
				t.Errorf("kind deleted: got %t, want %t", gone, !tt.stay)
			}
		})
	}
}
