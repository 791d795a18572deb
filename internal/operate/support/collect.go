// Package support writes a support bundle: an archive of the objects, events and logs of a
// management plane and of the consoles of machines, without secrets.
//
// It only reads. Sources that can't be read are listed in the archive and do not stop the others.
// Start with Collect; redact.go makes an archive safe to share.
package support

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// groups are the API groups whose objects are all collected.
var groups = []string{
	"anywhere.eks.amazonaws.com", "packages.eks.amazonaws.com", "addons.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io",
	"controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "ipam.cluster.x-k8s.io", "runtime.cluster.x-k8s.io", "drover.dev",
}

// plain are other kinds to collect. Of Secrets, only the names and sizes of the keys are kept.
var plain = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"},
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "secrets"},
	{Version: "v1", Resource: "pods"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
}

// pageSize bounds the objects in memory.
const pageSize = 250

// readTimeout bounds one request to a server that may be broken.
const readTimeout = 30 * time.Second

// Log is a text to collect.
type Log struct {
	// Name is its path in the archive, such as logs/manager.log.
	Name string
	// Open opens it.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Options select what to collect.
type Options struct {
	// Config is the configuration of a client of the management plane. Nil skips its objects.
	Config *rest.Config
	// Logs are collected in addition to the objects.
	Logs []Log
	// MaxLog is the number of bytes to keep of the end of each log.
	MaxLog int64
	// Facts, such as versions, are written to facts.yaml.
	Facts any
	// Progress is called with the name of each source before it is read.
	Progress func(source string)
}

// Collect writes an archive. It returns an error only if the archive can't be written; sources that
// could not be read are returned as a list, which is also in the archive.
func Collect(ctx context.Context, to io.Writer, o Options) (missing []string, err error) {
	c := &collector{Options: o, archive: newArchive(to)}
	if err := c.writeYAML("facts.yaml", o.Facts); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{c.objects, c.logs} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, c.archive.close())
		}
	}
	if len(c.missing) > 0 {
		if err := c.archive.write("missing.txt", []byte(strings.Join(c.missing, "\n")+"\n")); err != nil {
			return nil, errors.Join(err, c.archive.close())
		}
	}
	return c.missing, c.archive.close()
}

type collector struct {
	Options
	archive *archive
	missing []string
}

func (c *collector) addMissing(what string, err error) {
	c.missing = append(c.missing, Text(fmt.Sprintf("%s: %v", what, err)))
}

func (c *collector) progress(source string) {
	if c.Progress != nil {
		c.Progress(source)
	}
}

func (c *collector) writeYAML(name string, v any) error {
	data, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return c.archive.write(name, data)
}

// objects collects the objects of the management plane.
func (c *collector) objects(ctx context.Context) error {
	if c.Config == nil {
		return nil
	}
	cfg := rest.CopyConfig(c.Config)
	cfg.Timeout = readTimeout
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		c.addMissing("objects", err)
		return nil
	}
	for _, kind := range c.kinds(cfg) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.progress(kind.Resource)
		if err := c.kind(ctx, client, kind); err != nil {
			return err
		}
	}
	return nil
}

// kinds returns the kinds to collect that the server has.
func (c *collector) kinds(cfg *rest.Config) []schema.GroupVersionResource {
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		c.addMissing("kinds", err)
		return nil
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		c.addMissing("kinds", err)
	}
	out := slices.Clone(plain)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || !slices.Contains(groups, gv.Group) {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				out = append(out, gv.WithResource(r.Name))
			}
		}
	}
	if len(lists) == 0 {
		return nil // The server is unavailable: waiting for one timeout is enough.
	}
	return out
}

// kind writes all objects of a kind, each to a file in the directory of its namespace.
func (c *collector) kind(ctx context.Context, client dynamic.Interface, kind schema.GroupVersionResource) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(kind).List(ctx, options)
		if err != nil {
			c.addMissing(kind.GroupResource().String(), err)
			return nil
		}
		for i := range page.Items {
			if err := c.object(kind, &page.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

func (c *collector) object(kind schema.GroupVersionResource, o *unstructured.Unstructured) error {
	Object(o)
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = "_cluster"
	}
	return c.writeYAML(path.Join("objects", namespace, kind.GroupResource().String(), o.GetName()+".yaml"), o.Object)
}

// logs collects the end of each log.
func (c *collector) logs(ctx context.Context) error {
	for _, l := range c.Logs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.progress(l.Name)
		data, err := c.tail(ctx, l)
		if err != nil {
			c.addMissing(l.Name, err)
		}
		if len(data) == 0 {
			continue
		}
		if err := c.archive.write(l.Name, []byte(Text(string(data)))); err != nil {
			return err
		}
	}
	return nil
}

// tail returns the end of a log. If reading fails, it returns both the data and the error.
func (c *collector) tail(ctx context.Context, l Log) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return lastBytes(r, c.MaxLog)
}
