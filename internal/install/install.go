// Package install installs Drover's API in a cluster: namespace, CRDs, roles and webhook
// configurations, from the manifests embedded by package config; and, on request, that of Flux.
//
// It runs as an administrator, never as the manager. It never starts the manager, deletes nothing
// but a Flux of its own, and never touches a caBundle, which belongs to package webhookcert.
// Repeating it costs
// a few reads: every object carries the hash of its manifest, and an object whose hash matches is
// not written. Start with Apply and ApplyFlux.
package install

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/version"
)

// parallel is the number of objects that are written concurrently.
const parallel = 8

// Options select what to install and how.
type Options struct {
	// WebhookURL is the URL of the webhooks for the API server, such as "https://127.0.0.1:9443".
	// Empty means the Service of the Deployment.
	WebhookURL string
	// Namespace is the manager's namespace; by default config.Namespace, the only one supported so
	// far.
	Namespace string
	// Version is the version of the installing Drover; by default the running build's.
	Version string
	// More is installed last: the Deployment of the manager, if it runs in the cluster.
	More []config.Manifest
	// Log receives one line per written object.
	Log logr.Logger
}

// Apply installs or upgrades Drover's API, and returns when the API server serves every CRD. If the
// installed objects are of a newer Drover, it changes nothing and returns *NewerError.
func Apply(ctx context.Context, cfg *rest.Config, o Options) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	objects, err := o.objects()
	if err != nil {
		return err
	}
	c, err := newCluster(cfg, ourDefinitions)
	if err != nil {
		return err
	}
	installed, err := c.installed(ctx, objects)
	if err != nil {
		return err
	}
	stale, err := outdated(objects, installed, o.Version)
	if err != nil {
		return err
	}
	return c.write(ctx, objects, stale, o)
}

// write applies the stale ones of the objects, and waits in between until all CRDs are served.
func (c *cluster) write(ctx context.Context, objects, stale []object, o Options) error {
	early, late := inOrder(stale)
	for _, batch := range early {
		if err := c.applyAll(ctx, batch, o); err != nil {
			return err
		}
	}
	if err := c.awaitServed(ctx, definitionsAmong(objects)); err != nil {
		return err
	}
	return c.applyAll(ctx, late, o)
}

func (o Options) complete() (Options, error) {
	if o.Namespace != "" && o.Namespace != config.Namespace {
		return o, fmt.Errorf("installing into namespace %q: only %q is supported", o.Namespace, config.Namespace)
	}
	if o.Version == "" {
		o.Version = version.Get().Version
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return o, nil
}

// inOrder returns the objects to write before the CRDs are served, the namespace first, and those
// to write afterwards.
func inOrder(objects []object) (early [2][]object, late []object) {
	for _, obj := range objects {
		switch {
		case obj.kind == namespaces:
			early[0] = append(early[0], obj)
		case obj.last:
			late = append(late, obj)
		default:
			early[1] = append(early[1], obj)
		}
	}
	return early, late
}

func definitionsAmong(objects []object) []object {
	return slices.DeleteFunc(slices.Clone(objects), func(obj object) bool { return obj.kind != definitionsKind })
}

func (c *cluster) applyAll(ctx context.Context, objects []object, o Options) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, obj := range objects {
		group.Go(func() error { return c.apply(ctx, obj, o) })
	}
	return group.Wait()
}
