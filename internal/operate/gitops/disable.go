package gitops

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

const (
	// orphan makes Flux keep what it applied when a Kustomization is deleted.
	orphan = `{"spec":{"deletionPolicy":"Orphan"}}`
	// unmark removes the labels of Flux, which say that it applies an object.
	unmark = `{"metadata":{"labels":{"kustomize.toolkit.fluxcd.io/name":null,"kustomize.toolkit.fluxcd.io/namespace":null}}}`
	// releaseInterval is how often the deletion of a Kustomization is checked.
	releaseInterval = 500 * time.Millisecond
)

// Disabled is what a repository had applied.
type Disabled struct {
	URL string `json:"url,omitempty"`
	// Clusters are those that stay, as namespace/name.
	Clusters []string `json:"clusters"`
}

// Disable disconnects the repository. All clusters stay. The credentials go first, so that the
// manager doesn't create again what is deleted then. It can be repeated after a failure.
func (p *Plane) Disable(ctx context.Context, system string) (*Disabled, error) {
	out := &Disabled{Clusters: []string{}}
	secret, err := p.credentials(ctx, system)
	if err != nil {
		return nil, err
	}
	if secret != nil && secret.Annotations[anywherev1.GitURLAnnotation] != "" {
		out.URL = secret.Annotations[anywherev1.GitURLAnnotation]
		if err := client.IgnoreNotFound(p.Client.Delete(ctx, secret)); err != nil {
			return nil, fmt.Errorf("deleting Secret %q: %w", client.ObjectKeyFromObject(secret), err)
		}
	}
	all, err := p.list(ctx, Kustomizations, client.HasLabels{anywherev1.GitClusterLabel})
	if err != nil {
		return nil, err
	}
	for i := range all {
		key, err := p.release(ctx, &all[i])
		if err != nil {
			return nil, err
		}
		out.Clusters = append(out.Clusters, key.String())
	}
	return out, p.deleteSource(ctx, cmp.Or(system, spec.DefaultFluxSystem))
}

// release deletes a Kustomization without the cluster that it applied.
func (p *Plane) release(ctx context.Context, k *unstructured.Unstructured) (client.ObjectKey, error) {
	key := client.ObjectKey{Namespace: k.GetNamespace(), Name: k.GetLabels()[anywherev1.GitClusterLabel]}
	name := client.ObjectKeyFromObject(k).String()
	err := p.Client.Patch(ctx, k, client.RawPatch(types.MergePatchType, []byte(orphan)))
	if client.IgnoreNotFound(err) != nil {
		return key, fmt.Errorf("releasing the objects of Kustomization %q: %w", name, err)
	}
	err = p.Client.Delete(ctx, k)
	if client.IgnoreNotFound(err) != nil {
		return key, fmt.Errorf("deleting Kustomization %q: %w", name, err)
	}
	if err := p.untilGone(ctx, k); err != nil {
		return key, err
	}
	cluster := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err = p.Client.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(unmark)))
	if client.IgnoreNotFound(err) != nil {
		return key, fmt.Errorf("releasing cluster %q: %w", key, err)
	}
	return key, nil
}

// untilGone waits until Flux has released an object.
func (p *Plane) untilGone(ctx context.Context, k *unstructured.Unstructured) error {
	tick := time.NewTicker(releaseInterval)
	defer tick.Stop()
	for {
		err := p.Client.Get(ctx, client.ObjectKeyFromObject(k), k)
		if apierrors.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for Flux to release Kustomization %q, is it running? %w", client.ObjectKeyFromObject(k), ctx.Err())
		case <-tick.C:
		}
	}
}

// deleteSource deletes the GitRepository.
func (p *Plane) deleteSource(ctx context.Context, system string) error {
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(gitRepositories)
	source.SetNamespace(system)
	source.SetName(anywherev1.GitCredentials)
	if runs, err := p.RunsFlux(); err != nil || !runs {
		return err
	}
	err := p.Client.Delete(ctx, source)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting GitRepository %q: %w", client.ObjectKeyFromObject(source), err)
	}
	return nil
}
