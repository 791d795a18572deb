package management

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
)

const (
	fieldManager = "drover-management"
	deployment   = "deployment"
	offerFlag    = "--offer-addr="
	// maxReplicas is enough for one of them to be away.
	maxReplicas = 2
)

// Options say what to install on a cluster.
type Options struct {
	// Image is what its machines have.
	Image string
	// Metal is for clusters on machines of this host; nil for none.
	Metal *Metal
	// BundleKey is the file with the key that bundles of packages are signed with. The one of the plane that objects come from has their
	// bundles stay good. Without one, the manager offers no packages of its own.
	BundleKey string
	// Registry is the loopback address, host:port, at which the manager offers what ships with Drover, 127.0.0.1:5000 if empty. Add-ons name
	// it: if it is that of the plane they come from, they find their charts as before.
	Registry string
	Log      logr.Logger
}

// Install puts Drover's components on a cluster, or brings them up to date. What is right already is left alone.
func Install(ctx context.Context, to *rest.Config, o Options) error {
	c, err := newClient(to)
	if err != nil {
		return err
	}
	replicas, err := replicasFor(ctx, c)
	if err != nil {
		return err
	}
	secrets, err := o.secrets()
	if err != nil {
		return err
	}
	for _, namespace := range []string{config.Namespace, SystemNamespace} {
		if err := ensureNamespace(ctx, c, namespace); err != nil {
			return err
		}
	}
	for _, s := range secrets {
		if err := apply(ctx, c, s); err != nil {
			return err
		}
	}
	return install.Apply(ctx, to, install.Options{More: o.manager(replicas), Log: o.Log})
}

// replicasFor is no more than there are machines: two managers on one of them are no safer than one.
func replicasFor(ctx context.Context, c client.Client) (int, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.List(ctx, nodes); err != nil {
		return 0, fmt.Errorf("counting nodes: %w", err)
	}
	return min(max(len(nodes.Items), 1), maxReplicas), nil
}

var replicasLine = regexp.MustCompile(`(?m)^ {2}replicas: \d+$`)

// manager is what runs the manager, with what is known only now filled in.
func (o Options) manager(replicas int) []config.Manifest {
	manifests := config.Manager()
	for i, m := range manifests {
		if m.Name != deployment {
			continue
		}
		data := bytes.ReplaceAll(m.Data, []byte(config.ImagePlaceholder), []byte(o.Image))
		data = bytes.ReplaceAll(data, []byte(offerFlag+config.OfferAddress), []byte(offerFlag+cmp.Or(o.Registry, config.OfferAddress)))
		manifests[i].Data = replicasLine.ReplaceAll(data, []byte("  replicas: "+strconv.Itoa(replicas)))
	}
	return manifests
}

// ensureNamespace makes one that is missing, and does not mind what others have written about one that is there.
func ensureNamespace(ctx context.Context, c client.Client, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Create(ctx, namespace); err != nil && !alreadyExists(err) {
		return fmt.Errorf("making namespace %q: %w", name, err)
	}
	return nil
}

func apply(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(secret)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, configuration(fields), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("writing Secret %q: %w", secret.Name, err)
	}
	return nil
}
