// Package install puts Drover's API into a cluster: namespace, definitions, permissions and webhook
// configurations, all from the manifests embedded by package config.
//
// It runs as an administrator, never as the manager. It never starts the manager, never deletes
// anything, and never touches a caBundle, which belongs to package webhookcert. Applying twice
// costs a few reads: every object carries the hash of the manifest it came from, and an object
// whose hash matches is left alone. Start with Apply.
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

// parallel is how many objects are written at a time.
const parallel = 8

// Options select what to install and how.
type Options struct {
	// WebhookURL is where the API server reaches the webhooks, such as "https://127.0.0.1:9443".
	// Empty means through the Service that comes with the Deployment.
	WebhookURL string
	// Namespace is where the manager lives; config.Namespace if empty, which is the only one
	// supported so far.
	Namespace string
	// Version is that of the installing Drover; the running build's if empty.
	Version string
	// More is installed too, after all else: what runs the manager, if it is to run in the cluster.
	More []config.Manifest
	// Log receives one line per object that is written.
	Log logr.Logger
}

// Apply installs or upgrades Drover's API, and returns when every definition is served. If the
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
	c, err := newCluster(cfg)
	if err != nil {
		return err
	}
	stale, since, err := c.stale(ctx, objects, o.Version)
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

// write applies the namespace first, as others live in it, then all else side by side, waits for
// the definitions, and comes to More.
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
