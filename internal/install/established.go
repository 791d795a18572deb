package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drover-dev/drover/config"
)

// watchEstablished starts to watch the given CRDs before they are written, so that no event is
// lost. The returned function waits until they are established, or, called with false, only ends
// the watch.
func (c *cluster) watchEstablished(ctx context.Context, definitions []object, since string) func(wait bool) error {
	if len(definitions) == 0 {
		return func(bool) error { return nil }
	}
	pending := map[string]bool{}
	for _, obj := range definitions {
		pending[obj.name] = true
	}
	w, err := c.dynamic.Resource(definitionsKind).Watch(ctx, metav1.ListOptions{
		LabelSelector:   config.LabelPartOf + "=" + config.PartOf,
		ResourceVersion: since,
	})
	return func(wait bool) error {
		if err != nil {
			return fmt.Errorf("watching CRDs: %w", err)
		}
		defer w.Stop()
		if !wait {
			return nil
		}
		return awaitEstablished(ctx, w, pending)
	}
}

func awaitEstablished(ctx context.Context, w watch.Interface, pending map[string]bool) error {
	for len(pending) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be served: %w", sorted(pending), ctx.Err())
		case event, open := <-w.ResultChan():
			if !open {
				return fmt.Errorf("waiting for %s to be served: the watch ended; try again", sorted(pending))
			}
			if u, ok := event.Object.(*unstructured.Unstructured); ok && established(u) {
				delete(pending, u.GetName())
			}
		}
	}
	return nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == string(apiextensionsv1.Established) && condition["status"] == string(apiextensionsv1.ConditionTrue)
	})
}

func sorted(names map[string]bool) string {
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
