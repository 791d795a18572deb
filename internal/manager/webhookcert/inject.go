package webhookcert

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
)

const fieldManager = "drover-webhookcert"

// injector writes the CA bundle into all objects that refer to our webhooks.
type injector struct {
	rest rest.Interface

	mu sync.Mutex
	// seen is the generation at which an object was last found to carry the bundle.
	seen map[types.UID]int64
}

func newInjector(cfg *rest.Config) (*injector, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	c, err := rest.RESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client for CA bundles: %w", err)
	}
	return &injector{rest: c, seen: map[types.UID]int64{}}, nil
}

// inject writes the bundle to every target. A failure on one target does not stop the others.
func (i *injector) inject(ctx context.Context, bundle []byte) error {
	i.forget()
	definitions, err := i.definitions(ctx)
	errs := []error{err}
	for path, t := range i.configurations(ctx, &errs) {
		errs = append(errs, i.injectOne(ctx, path, t, bundle))
	}
	for n := range definitions {
		errs = append(errs, i.injectOne(ctx, definitionsPath+"/"+definitions[n].Name, &definitions[n], bundle))
	}
	return errors.Join(errs...)
}

// configurations returns the webhook configurations that exist, by path.
func (i *injector) configurations(ctx context.Context, errs *[]error) map[string]*target {
	found := map[string]*target{}
	for _, path := range []string{mutatingPath + "/" + config.MutatingWebhooks, validatingPath + "/" + config.ValidatingWebhooks} {
		t, err := i.get(ctx, path)
		if apierrors.IsNotFound(err) {
			continue // created by an install, which triggers the watch
		}
		if err != nil {
			*errs = append(*errs, fmt.Errorf("reading %q: %w", path, err))
			continue
		}
		found[path] = t
	}
	return found
}

func (i *injector) injectOne(ctx context.Context, path string, t *target, bundle []byte) error {
	patch, err := t.patch(bundle)
	if err != nil {
		return fmt.Errorf("writing the CA bundle of %q: %w", path, err)
	}
	if patch != nil {
		if t, err = i.write(ctx, path, patch); err != nil {
			return fmt.Errorf("writing the CA bundle of %q: %w", path, err)
		}
	}
	i.remember(&t.ObjectMeta)
	return nil
}

// changed reports whether obj was written by others since it was last injected.
func (i *injector) changed(obj client.Object) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen[obj.GetUID()] != obj.GetGeneration()
}

func (i *injector) remember(obj *metav1.ObjectMeta) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen[obj.UID] = obj.Generation
}

func (i *injector) forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.seen)
}
