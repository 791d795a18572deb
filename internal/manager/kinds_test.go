package manager_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// packetKinds returns the provider's CRDs on the API server.
func packetKinds(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	server, _ := ready(t)
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := newClient(t, server.Config).List(t.Context(), list, client.MatchingLabels{"cluster.x-k8s.io/provider": "infrastructure-packet"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 4 {
		t.Fatalf("%d kinds, want 4", len(list.Items))
	}
	return list.Items
}

func TestEveryPrinterColumnShowsAnExistingField(t *testing.T) {
	for _, crd := range packetKinds(t) {
		for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			if strings.HasPrefix(column.JSONPath, ".metadata.") {
				continue
			}
			schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			for _, field := range strings.Split(strings.TrimPrefix(column.JSONPath, "."), ".") {
				next, ok := schema.Properties[field]
				if !ok {
					t.Errorf("column %s of %s shows %s, but there is no %s", column.Name, crd.Spec.Names.Kind, column.JSONPath, field)
					break
				}
				schema = &next
			}
		}
	}
}

func TestEveryKindHasContractAndClusterctlLabels(t *testing.T) {
	for _, crd := range packetKinds(t) {
		for _, label := range []string{"cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"} {
			if got := crd.Labels[label]; got != "v1beta1" {
				t.Errorf("%s: label %s is %q", crd.Spec.Names.Kind, label, got)
			}
		}
		if _, ok := crd.Labels["clusterctl.cluster.x-k8s.io"]; !ok {
			t.Errorf("clusterctl would not move %s", crd.Spec.Names.Kind)
		}
		stored := crd.Status.StoredVersions
		if len(stored) != 1 || stored[0] != "v1beta1" || !established(crd) {
			t.Errorf("%s is stored as %v", crd.Spec.Names.Kind, stored)
		}
	}
}

func established(crd apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return string(c.Status) == string(metav1.ConditionTrue)
		}
	}
	return false
}
