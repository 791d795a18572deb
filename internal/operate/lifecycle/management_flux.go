package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// keptSuspended is the checkpoint key of the objects of Flux that were suspended, as
// "kind/namespace/name".
const keptSuspended = "flux-suspended"

// Kinds of Flux: what it fetches, and what it applies from that.
var (
	fluxSource      = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
	fluxApplication = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
)

// fluxImages returns the images of Flux, or nil if the cluster doesn't need it.
func (m *Management) fluxImages() (*bootstrap.FluxImages, error) {
	switch {
	case m.Config.Flux == nil && !m.runsGitOps:
		return nil, nil // Without GitOps, there are none.
	case m.flux != nil:
		return m.flux, nil
	case m.Image != "":
		m.flux = bootstrap.UpstreamFlux()
		return m.flux, nil
	}
	var err error
	m.flux, err = bootstrap.PreloadedFlux()
	return m.flux, err
}

// deliverFlux preloads Flux's images on the machines of this host, if the cluster needs them.
func (m *Management) deliverFlux(ctx context.Context, p *phase.Progress) error {
	images, err := m.fluxImages()
	if err != nil || images == nil {
		return err
	}
	p.Waiting("Preloading Flux's images on the machines of this host")
	return images.Deliver(ctx, m.Metal)
}

// suspendFlux keeps Flux from fetching the repository, and from applying the management cluster. It
// returns what it has suspended, now or earlier. What somebody else has suspended stays so.
func (m *Management) suspendFlux(ctx context.Context, p *phase.Progress, w *Workload) (suspended []string, err error) {
	if _, err := p.Kept(keptSuspended, &suspended); err != nil {
		return nil, err
	}
	for _, kind := range []schema.GroupVersionKind{fluxSource, fluxApplication} {
		all, err := m.fluxObjects(ctx, w, kind)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if already, _, _ := unstructured.NestedBool(all[i].Object, "spec", "suspend"); already {
				continue
			}
			if name := fluxName(&all[i]); !slices.Contains(suspended, name) {
				suspended = append(suspended, name)
				// Recorded first, as pauses are.
				if err := p.Keep(keptSuspended, suspended); err != nil {
					return nil, err
				}
			}
			if err := setSuspended(ctx, w.plane.Client, &all[i], `{"spec":{"suspend":true}}`); err != nil {
				return nil, err
			}
		}
	}
	return suspended, nil
}

// resumeFlux resumes objects of some kinds that suspendFlux has suspended.
func (m *Management) resumeFlux(ctx context.Context, p *phase.Progress, w *Workload, kinds ...schema.GroupVersionKind) error {
	var suspended []string
	if _, err := p.Kept(keptSuspended, &suspended); err != nil || len(suspended) == 0 {
		return err
	}
	for _, kind := range kinds {
		all, err := m.fluxObjects(ctx, w, kind)
		if err != nil {
			return err
		}
		for i := range all {
			if !slices.Contains(suspended, fluxName(&all[i])) {
				continue
			}
			if err := setSuspended(ctx, w.plane.Client, &all[i], `{"spec":{"suspend":null}}`); err != nil {
				return err
			}
		}
	}
	return nil
}

// fluxObjects returns the GitRepository, or the Kustomizations of the management cluster. Without
// Flux, there are none.
func (m *Management) fluxObjects(ctx context.Context, w *Workload, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind)
	options := []client.ListOption{client.InNamespace(config.FluxNamespace)}
	if kind == fluxApplication {
		options = append(options, client.MatchingLabels{anywherev1.GitClusterLabel: m.Config.Cluster.Name})
	}
	err := w.plane.Client.List(ctx, all, options...)
	if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	if kind == fluxSource {
		all.Items = slices.DeleteFunc(all.Items, func(u unstructured.Unstructured) bool { return u.GetName() != anywherev1.GitCredentials })
	}
	return all.Items, nil
}

func fluxName(u *unstructured.Unstructured) string {
	return strings.Join([]string{u.GetKind(), u.GetNamespace(), u.GetName()}, "/")
}

// setSuspended patches an object of Flux. One that is gone is ignored.
func setSuspended(ctx context.Context, c client.Client, u *unstructured.Unstructured, patch string) error {
	err := c.Patch(ctx, u, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(anywherev1.FieldManagerCLI))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing whether %s is suspended: %w", fluxName(u), err)
	}
	return nil
}
