// Package install installs Drover's API in a cluster: namespace, CRDs, roles and webhook
// configurations, from the manifests embedded by package config; and, on request, that of Flux.
//
// It runs as an administrator, never as the manager. It never starts the manager, never deletes
// anything, and never touches a caBundle, which belongs to package webhookcert. Repeating it costs
// a few reads: every object carries the hash of its manifest, and an object whose hash matches is
// skipped. Start with Apply and ApplyFlux.
package install

import (
	"context"
	"errors"
	"fmt"

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

// Apply installs or upgrades Drover's API, and returns when every CRD is established. If the
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
	installed, since, err := c.installed(ctx, objects)
	if err != nil {
		return err
	}
	stale, err := outdated(objects, installed, o.Version)
	if err != nil || len(stale) == 0 {
		return err
	}
	return c.write(ctx, stale, since, o)
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

// write applies the namespace first, then the other objects concurrently, waits for the CRDs, and
// finally applies More.
func (c *cluster) write(ctx context.Context, stale []object, since string, o Options) error {
	var later, last, definitions []object
	for _, obj := range stale {
		if obj.kind == namespaces {
			if err := c.apply(ctx, obj, o); err != nil {
				return err
			}
			continue
		}
		if obj.kind == definitionsKind {
			definitions = append(definitions, obj)
		}
		if obj.last {
			last = append(last, obj)
			continue
		}
		later = append(later, obj)
	}
	wait := c.watchEstablished(ctx, definitions, since)
	if err := c.applyAll(ctx, later, o); err != nil {
		return errors.Join(err, wait(false))
	}
	if err := wait(true); err != nil {
		return err
	}
	return c.applyAll(ctx, last, o)
}

func (c *cluster) applyAll(ctx context.Context, objects []object, o Options) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, obj := range objects {
		group.Go(func() error { return c.apply(ctx, obj, o) })
	}
	return group.Wait()
}
