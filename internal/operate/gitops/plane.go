package gitops

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// Kinds of Flux. They are read as unstructured objects, because their Go types would bring along
// the dependencies of its controllers.
var (
	// Kustomizations have the commits that Flux has applied to clusters.
	Kustomizations  = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	gitRepositories = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
)

// Plane is a management plane whose clusters are in Git.
type Plane struct{ *inspect.Plane }

// Connect returns a connection to a management plane. It sends no request.
func Connect(config *rest.Config) (*Plane, error) {
	p, err := inspect.Connect(config)
	return &Plane{p}, err
}

// RunsFlux reports whether the plane has the kinds of Flux.
func (p *Plane) RunsFlux() (bool, error) {
	_, err := p.Client.RESTMapper().RESTMapping(Kustomizations.GroupKind())
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("checking whether the management plane runs Flux: %w", err)
	}
	return true, nil
}

const (
	// FluxTimeout is how long an embedded plane may take to start Flux for its first FluxConfig.
	FluxTimeout = 20 * time.Second
	// fluxInterval is how often that is checked.
	fluxInterval = 250 * time.Millisecond
)

// AwaitFlux waits until the plane has the kinds of Flux, and reports whether it has: an embedded
// plane starts Flux when it gets a FluxConfig. It calls waiting if that takes time.
func (p *Plane) AwaitFlux(ctx context.Context, limit time.Duration, waiting func()) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(fluxInterval)
	defer tick.Stop()
	for {
		runs, err := p.RunsFlux()
		if runs || err != nil {
			return runs, err
		}
		waiting()
		select {
		case <-limited.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// list returns objects of Flux, or none if Flux is not installed or the caller may not read them.
func (p *Plane) list(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind)
	err := p.Client.List(ctx, all, options...)
	if apimeta.IsNoMatchError(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	return all.Items, nil
}

// fluxConfigs returns the FluxConfigs of a namespace, or of all.
func (p *Plane) fluxConfigs(ctx context.Context, namespace string) ([]anywherev1.FluxConfig, error) {
	all := &anywherev1.FluxConfigList{}
	err := p.Client.List(ctx, all, client.InNamespace(namespace))
	if apierrors.IsForbidden(err) && namespace == "" && p.Own != "" {
		err = p.Client.List(ctx, all, client.InNamespace(p.Own))
	}
	if err != nil {
		return nil, fmt.Errorf("listing FluxConfigs: %w", err)
	}
	return all.Items, nil
}

// ensureNamespace creates a namespace unless it exists.
func (p *Plane) ensureNamespace(ctx context.Context, name string) error {
	err := p.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %q: %w", name, err)
	}
	return nil
}

// credentials returns the Secret with the credentials of the repository, or nil.
func (p *Plane) credentials(ctx context.Context, system string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cmp.Or(system, spec.DefaultFluxSystem), Name: anywherev1.GitCredentials}
	err := p.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil // A missing Secret is no failure.
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %q: %w", key, err)
	}
	return secret, nil
}
