package install

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/base/version"
)

const fieldManager = "drover-install"

// cluster is the API server to install into.
type cluster struct {
	metadata  metadata.Interface
	dynamic   dynamic.Interface
	discovery rest.Interface
	// selected are the CRDs that are listed.
	selected metav1.ListOptions
}

func newCluster(cfg *rest.Config, selected metav1.ListOptions) (*cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // an install is one burst of a few dozen requests
	m, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	d, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &cluster{metadata: m, dynamic: d, discovery: served.RESTClient(), selected: selected}, nil
}

// installation is the metadata of existing objects by the object's String.
type installation map[string]*metav1.PartialObjectMetadata

// installed returns the objects that exist. It reads only metadata.
func (c *cluster) installed(ctx context.Context, objects []object) (installation, error) {
	found, err := c.definitions(ctx)
	if err != nil {
		return nil, err
	}
	return found, c.others(ctx, objects, found)
}

// outdated returns the objects that are missing or differ.
func outdated(objects []object, installed installation, own string) ([]object, error) {
	var stale []object
	for _, obj := range objects {
		meta := installed[obj.String()]
		if meta != nil && version.Older(own, meta.Annotations[VersionAnnotation]) {
			return nil, &NewerError{Object: obj.String(), Installed: meta.Annotations[VersionAnnotation], Own: own}
		}
		if meta == nil || meta.Annotations[HashAnnotation] != obj.hash {
			stale = append(stale, obj)
		}
	}
	return stale, nil
}

// definitions lists the CRDs with one request, as they are most of the objects.
func (c *cluster) definitions(ctx context.Context) (installation, error) {
	list, err := c.metadata.Resource(definitionsKind).List(ctx, c.selected)
	if err != nil {
		return nil, fmt.Errorf("listing CRDs: %w", err)
	}
	installed := installation{}
	for i := range list.Items {
		installed[object{kind: definitionsKind, name: list.Items[i].Name}.String()] = &list.Items[i]
	}
	return installed, nil
}

// others adds the objects that are not CRDs, each with its own request.
func (c *cluster) others(ctx context.Context, objects []object, installed installation) error {
	found := make([]*metav1.PartialObjectMetadata, len(objects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, obj := range objects {
		if obj.kind == definitionsKind {
			continue
		}
		group.Go(func() error {
			meta, err := c.metadata.Resource(obj.kind).Namespace(obj.namespace).Get(ctx, obj.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("reading %q: %w", obj, err)
			}
			found[i] = meta
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, meta := range found {
		if meta != nil {
			installed[objects[i].String()] = meta
		}
	}
	return nil
}

func (c *cluster) apply(ctx context.Context, obj object, o Options) error {
	body, err := o.render(obj)
	if err != nil {
		return err
	}
	err = c.patch(ctx, obj, body)
	if apierrors.IsInvalid(err) && o.WebhookURL != "" {
		err = errors.Join(c.readdress(ctx, obj, o), c.patch(ctx, obj, body))
	}
	if err != nil {
		return fmt.Errorf("applying %q: %w", obj, err)
	}
	o.Log.V(1).Info("Applied", "object", obj.String())
	return nil
}

func (c *cluster) patch(ctx context.Context, obj object, body []byte) error {
	force := true
	opts := metav1.PatchOptions{FieldManager: fieldManager, Force: &force}
	_, err := c.dynamic.Resource(obj.kind).Namespace(obj.namespace).Patch(ctx, obj.name, types.ApplyPatchType, body, opts)
	return err
}

// readdress changes the webhooks of an object that kubectl applied from a Service to a URL.
// Server-side apply can't: it keeps the Service, which it does not own, and a webhook must not have
// both.
func (c *cluster) readdress(ctx context.Context, obj object, o Options) error {
	resource := c.dynamic.Resource(obj.kind).Namespace(obj.namespace)
	live, err := resource.Get(ctx, obj.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	o.retarget(live.Object)
	_, err = resource.Update(ctx, live, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}
