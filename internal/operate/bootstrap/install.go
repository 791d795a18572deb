package bootstrap

import (
	"context"
	"fmt"

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
	// maxReplicas survives the loss of one replica.
	maxReplicas = 2
)

// Options say what to install on a cluster.
type Options struct {
	// Image is the reference of Drover's image.
	Image string
	// Metal is for clusters on machines of this host, nil for others.
	Metal *Metal
	// BundleKey is the file with the key that signs bundles of packages. Use that of the plane that
	// the objects come from, so that their bundles stay valid. Without a key, the manager offers no
	// packages.
	BundleKey string
	// Registry is the loopback address, host:port, of the manager's registry of what ships with
	// Drover; 127.0.0.1:5000 if empty. Add-ons refer to it: use that of the plane that they come
	// from.
	Registry string
	// Flux are the images of the Flux controllers, with which the manager manages clusters through
	// Git; nil to install neither.
	Flux *config.FluxImages
	Log  logr.Logger
}

// Install installs or upgrades Drover's components on a cluster. It does not write what is up to
// date.
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
	if o.Flux != nil { // Before the manager, which requires its API.
		if err := InstallFlux(ctx, to, *o.Flux); err != nil {
			return err
		}
	}
	identified, err := serversIdentifyThemselves(ctx, c)
	if err != nil {
		return err
	}
	more, err := o.manager(site{replicas: replicas, requireCertificates: identified})
	if err != nil {
		return err
	}
	return install.Apply(ctx, to, install.Options{More: more, Log: o.Log})
}

// replicasFor returns the number of replicas: at most one per node, because two on one node are no
// safer.
func replicasFor(ctx context.Context, c client.Client) (int32, error) {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.List(ctx, nodes); err != nil {
		return 0, fmt.Errorf("counting nodes: %w", err)
	}
	return int32(min(max(len(nodes.Items), 1), maxReplicas)), nil
}

// ensureNamespace creates a namespace unless it exists.
func ensureNamespace(ctx context.Context, c client.Client, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := c.Create(ctx, namespace); err != nil && !alreadyExists(err) {
		return fmt.Errorf("creating namespace %q: %w", name, err)
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
