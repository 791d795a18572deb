// Package support collects what somebody needs who was not there: the objects of a management plane, its events and logs, and the consoles of
// machines, in one archive, without secrets.
//
// It reads and changes nothing. What can't be read is told in the archive and stops nothing else. Start with Collect; redact.go is what
// makes an archive safe to hand on.
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

// groups are those whose objects are of interest, all of them.
var groups = []string{
	"anywhere.eks.amazonaws.com", "packages.eks.amazonaws.com", "addons.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io",
	"controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "ipam.cluster.x-k8s.io", "runtime.cluster.x-k8s.io", "drover.dev",
}

// plain are further kinds of interest; of Secrets only the names of their keys are.
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

// pageSize bounds what is held in memory of one kind.
const pageSize = 250

// readTimeout bounds one question to a server that may be the very thing that is broken.
const readTimeout = 30 * time.Second

// Log is a text that goes into the archive.
type Log struct {
	// Name is where in the archive, such as logs/manager.log.
	Name string
	// Open returns it.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Options say what to collect.
type Options struct {
	// Config is how to reach the management plane; nil if it can't be.
	Config *rest.Config
	// Logs are collected beside the objects.
	Logs []Log
	// MaxLog is how many bytes of the end of a log are kept.
	MaxLog int64
	// Facts are written as they are, as facts.yaml: versions and the like.
	Facts any
	// Tell is called with what is being read.
	Tell func(what string)
}

// Collect writes an archive. The error is about the archive alone; what could not be read is in it, and returned as a list.
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

func (c *collector) miss(what string, err error) {
	c.missing = append(c.missing, Text(fmt.Sprintf("%s: %v", what, err)))
}

func (c *collector) tell(what string) {
	if c.Tell != nil {
		c.Tell(what)
	}
}

func (c *collector) writeYAML(name string, v any) error {
	data, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("writing %q: %w", name, err)
	}
	return c.archive.write(name, data)
}

// objects reads what is in the API server. A kind that can't be read is missed.
func (c *collector) objects(ctx context.Context) error {
	if c.Config == nil {
		return nil
	}
	cfg := rest.CopyConfig(c.Config)
	cfg.Timeout = readTimeout
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		c.miss("objects", err)
		return nil
	}
	for _, kind := range c.kinds(cfg) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.tell(kind.Resource)
		if err := c.kind(ctx, client, kind); err != nil {
			return err
		}
	}
	return nil
}

// kinds are those that the server has.
func (c *collector) kinds(cfg *rest.Config) []schema.GroupVersionResource {
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		c.miss("kinds", err)
		return nil
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		c.miss("kinds", err)
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
		return nil // The server does not answer, and to wait for that once is enough.
	}
	return out
}

// kind writes all objects of a kind, each as a file below its namespace.
func (c *collector) kind(ctx context.Context, client dynamic.Interface, kind schema.GroupVersionResource) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := client.Resource(kind).List(ctx, options)
		if err != nil {
			c.miss(kind.GroupResource().String(), err)
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

// logs writes the ends of logs.
func (c *collector) logs(ctx context.Context) error {
	for _, l := range c.Logs {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.tell(l.Name)
		data, err := c.tail(ctx, l)
		if err != nil {
			c.miss(l.Name, err)
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

// tail returns what could be read, also when that ended too early.
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
