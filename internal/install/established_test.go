package install

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/drover-dev/drover/config"
)

// definition returns a CRD of Drover's.
func definition(name, established string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name, "labels": map[string]any{config.LabelPartOf: config.PartOf}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}},
	}}
}

// withWatches returns a cluster with CRDs whose n-th watch is watches[n].
func withWatches(watches []watch.Interface, definitions ...runtime.Object) *cluster {
	kinds := map[schema.GroupVersionResource]string{definitionsKind: "CustomResourceDefinitionList"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, definitions...)
	client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
		next := watches[0]
		watches = watches[1:]
		return true, next, nil
	})
	return &cluster{dynamic: client}
}

func ended() watch.Interface {
	w := watch.NewFake()
	w.Stop()
	return w
}

func TestEndedWatchOfDefinitionsIsRepeated(t *testing.T) {
	last := watch.NewFakeWithChanSize(1, false)
	last.Modify(definition("b", "True"))
	c := withWatches([]watch.Interface{ended(), ended(), last}, definition("a", "True"), definition("b", "False"))
	wait := c.watchEstablished(t.Context(), []object{{name: "a"}, {name: "b"}}, "1")
	if err := wait(true); err != nil {
		t.Error(err)
	}
}

func TestErrorNamesAFewPendingDefinitions(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := withWatches([]watch.Interface{watch.NewFake()})
	wait := c.watchEstablished(ctx, []object{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}, {name: "e"}}, "1")
	cancel()
	if err := wait(true); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waiting for a, b, c and 2 more to be served") {
		t.Errorf("error %v", err)
	}
}
