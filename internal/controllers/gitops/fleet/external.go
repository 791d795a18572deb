package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// originKey is the metadata of an artifact that has the commit. Flux copies it to the status of
// Kustomizations.
const originKey = "org.opencontainers.image.revision"

// externalArtifactKind is the kind of ExternalArtifacts.
func externalArtifactKind() schema.GroupVersionKind {
	return sourcev1.GroupVersion.WithKind(sourcev1.ExternalArtifactKind)
}

// externalArtifact returns the source of a cluster: the archive of a commit, as source-controller
// serves it, with a revision that changes only together with files of the cluster.
func (p placement) externalArtifact() *sourcev1.ExternalArtifact {
	e := &sourcev1.ExternalArtifact{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.namespace, Name: p.entry.key.Name, Labels: map[string]string{anywherev1.GitClusterLabel: p.entry.key.Name, ManagedByLabel: ManagedBy},
		},
		Spec: sourcev1.ExternalArtifactSpec{SourceRef: &fluxmeta.NamespacedObjectKindReference{
			APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind, Namespace: p.source.Namespace, Name: p.source.Name,
		}},
	}
	e.SetGroupVersionKind(externalArtifactKind())
	return e
}

// revised returns the archive of a commit with the revision of a cluster.
func (e *entry) revised(archive *fluxmeta.Artifact) *fluxmeta.Artifact {
	a := archive.DeepCopy()
	a.Revision = "files@" + e.files
	a.Metadata = map[string]string{originKey: archive.Revision}
	return a
}

// ensureExternalArtifact makes the source of a cluster what the newest commit has. It reports false
// if somebody else has an object of that name.
func (c *Controller) ensureExternalArtifact(ctx context.Context, s *scope, p placement) (bool, error) {
	want := p.externalArtifact()
	key := client.ObjectKeyFromObject(want)
	is := &sourcev1.ExternalArtifact{}
	err := c.Client.Get(ctx, key, is)
	switch {
	case apierrors.IsNotFound(err):
		if err := Apply(ctx, c.Client, want); err != nil {
			return false, err
		}
		is = want
	case err != nil:
		return false, fmt.Errorf("reading ExternalArtifact %q: %w", key, err)
	case !isSourceOf(is, p.source):
		s.problem(p.entry.key.Namespace, fmt.Sprintf("ExternalArtifact %q: %v", key, errUnowned))
		return false, nil
	}
	return true, c.publish(ctx, is, p.entry.revised(s.repository.Status.Artifact))
}

// publish writes the artifact of a source. The archive of every commit is another one, and
// source-controller deletes old ones, so that each source follows the newest commit. Without
// another revision, kustomize-controller doesn't act on it.
func (c *Controller) publish(ctx context.Context, is *sourcev1.ExternalArtifact, artifact *fluxmeta.Artifact) error {
	if sameArtifact(is.Status.Artifact, artifact) {
		return nil
	}
	was := is.DeepCopy()
	setPublished(is, artifact)
	if err := c.Client.Status().Patch(ctx, is, client.MergeFrom(was), client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("publishing ExternalArtifact %q: %w", client.ObjectKeyFromObject(is), err)
	}
	return nil
}

// followArchive moves the source of a cluster that is kept as it is to the newest archive, before
// the old one is deleted. Revision and commit stay those of the files that Flux has applied.
func (c *Controller) followArchive(ctx context.Context, s *scope, one *candidate) error {
	if one.own == nil || !isExternal(one.own) {
		return nil
	}
	is := &sourcev1.ExternalArtifact{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: one.own.Namespace, Name: one.own.Spec.SourceRef.Name}, is)
	if apierrors.IsNotFound(err) || err == nil && (is.Status.Artifact == nil || !isSourceOf(is, client.ObjectKeyFromObject(s.repository))) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the source of cluster %q: %w", one.key, err)
	}
	moved := s.repository.Status.Artifact.DeepCopy()
	moved.Revision, moved.Metadata = is.Status.Artifact.Revision, is.Status.Artifact.Metadata
	return c.publish(ctx, is, moved)
}

func sameArtifact(a, b *fluxmeta.Artifact) bool {
	return a != nil && b != nil && a.Revision == b.Revision && a.Digest == b.Digest && a.URL == b.URL && a.Path == b.Path && maps.Equal(a.Metadata, b.Metadata)
}

// isSourceOf reports whether Drover created an ExternalArtifact for a GitRepository.
func isSourceOf(e *sourcev1.ExternalArtifact, repository client.ObjectKey) bool {
	return e.Labels[ManagedByLabel] == ManagedBy && RepositoryOf(e) == repository
}

// RepositoryOf returns the GitRepository that an ExternalArtifact was made from.
func RepositoryOf(e *sourcev1.ExternalArtifact) client.ObjectKey {
	if e.Spec.SourceRef == nil {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: e.Spec.SourceRef.Namespace, Name: e.Spec.SourceRef.Name}
}

// pruneExternalArtifacts deletes sources of a repository that no Kustomization refers to.
func (c *Controller) pruneExternalArtifacts(ctx context.Context, repository client.ObjectKey) error {
	if !c.Support.Served() {
		return nil
	}
	all := &sourcev1.ExternalArtifactList{}
	if err := c.Client.List(ctx, all, client.HasLabels{anywherev1.GitClusterLabel}); err != nil {
		return fmt.Errorf("listing ExternalArtifacts: %w", err)
	}
	used, err := c.usedExternalArtifacts(ctx)
	if err != nil {
		return err
	}
	for i := range all.Items {
		e := &all.Items[i]
		if !isSourceOf(e, repository) || used[client.ObjectKeyFromObject(e)] {
			continue
		}
		if err := client.IgnoreNotFound(c.Client.Delete(ctx, e, client.Preconditions{UID: &e.UID})); err != nil {
			return fmt.Errorf("deleting ExternalArtifact %q: %w", client.ObjectKeyFromObject(e), err)
		}
	}
	return nil
}

// usedExternalArtifacts returns the sources that Kustomizations refer to.
func (c *Controller) usedExternalArtifacts(ctx context.Context) (map[client.ObjectKey]bool, error) {
	all := &kustomizev1.KustomizationList{}
	if err := c.Client.List(ctx, all, client.HasLabels{anywherev1.GitClusterLabel}); err != nil {
		return nil, fmt.Errorf("listing Kustomizations: %w", err)
	}
	used := map[client.ObjectKey]bool{}
	for i := range all.Items {
		if k := &all.Items[i]; isExternal(k) {
			used[client.ObjectKey{Namespace: k.Namespace, Name: k.Spec.SourceRef.Name}] = true
		}
	}
	return used, nil
}

// chooseSources decides whether each cluster gets a source of its own. A Flux that has rejected one
// since it was asked is not asked again.
func (c *Controller) chooseSources(ctx context.Context, s *scope) error {
	all := &kustomizev1.KustomizationList{}
	if err := c.Client.List(ctx, all, client.HasLabels{anywherev1.GitClusterLabel}); err != nil {
		return fmt.Errorf("listing Kustomizations: %w", err)
	}
	if slices.ContainsFunc(all.Items, func(k kustomizev1.Kustomization) bool { return isDenied(&k) }) {
		c.Support.Deny()
	}
	var err error
	s.external, err = c.Support.Accepts(ctx, client.ObjectKeyFromObject(s.repository))
	return err
}
