package install

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/text"
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
	w, err := c.watchDefinitions(ctx, since)
	return func(wait bool) error {
		if err != nil {
			return err
		}
		if !wait {
			w.Stop()
			return nil
		}
		return c.awaitEstablished(ctx, w, pending)
	}
}

// ourDefinitions selects Drover's CRDs.
var ourDefinitions = metav1.ListOptions{LabelSelector: config.LabelPartOf + "=" + config.PartOf}

func (c *cluster) watchDefinitions(ctx context.Context, since string) (watch.Interface, error) {
	options := c.selected
	options.ResourceVersion = since
	w, err := c.dynamic.Resource(definitionsKind).Watch(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watching CRDs: %w", err)
	}
	return w, nil
}

// awaitEstablished waits until no CRD is pending. API servers end watches at any time, and do so
// when they are busy.
func (c *cluster) awaitEstablished(ctx context.Context, w watch.Interface, pending map[string]bool) error {
	for {
		followEstablished(ctx, w, pending)
		w.Stop()
		if len(pending) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			names := slices.Sorted(maps.Keys(pending))
			return fmt.Errorf("waiting for %s to be served: %w", text.FirstN(names, namedDefinitions), ctx.Err())
		}
		list, err := c.dynamic.Resource(definitionsKind).List(ctx, c.selected)
		if err != nil {
			return fmt.Errorf("listing CRDs: %w", err)
		}
		for i := range list.Items {
			observeEstablished(&list.Items[i], pending)
		}
		if w, err = c.watchDefinitions(ctx, list.GetResourceVersion()); err != nil {
			return err
		}
	}
}

// namedDefinitions is how many CRDs an error names.
const namedDefinitions = 3

// followEstablished removes CRDs that are established from pending, until none is left or the watch
// ends.
func followEstablished(ctx context.Context, w watch.Interface, pending map[string]bool) {
	for len(pending) > 0 {
		select {
		case <-ctx.Done():
			return
		case event, open := <-w.ResultChan():
			if !open {
				return
			}
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				observeEstablished(u, pending)
			}
		}
	}
}

func observeEstablished(definition *unstructured.Unstructured, pending map[string]bool) {
	if established(definition) {
		delete(pending, definition.GetName())
	}
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == string(apiextensionsv1.Established) && condition["status"] == string(apiextensionsv1.ConditionTrue)
	})
}
