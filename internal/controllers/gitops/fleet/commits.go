package fleet

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Kustomizations lists Kustomizations of clusters. The revisions in their status are those of
// commits, also if Flux applies a cluster by the revision of its own files: a cluster that has the
// files of the newest commit has that commit.
func Kustomizations(ctx context.Context, reader client.Reader, o ...client.ListOption) ([]kustomizev1.Kustomization, error) {
	all := &kustomizev1.KustomizationList{}
	if err := reader.List(ctx, all, append(o, client.HasLabels{anywherev1.GitClusterLabel})...); err != nil {
		return nil, fmt.Errorf("listing Kustomizations: %w", err)
	}
	for i := range all.Items {
		k := &all.Items[i]
		if !isExternal(k) {
			continue
		}
		e := &sourcev1.ExternalArtifact{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Spec.SourceRef.Name}, e)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the source of Kustomization %q: %w", client.ObjectKeyFromObject(k), err)
		}
		inCommits(&k.Status, e.Status.Artifact)
	}
	return all.Items, nil
}

// isExternal reports whether a Kustomization applies an ExternalArtifact.
func isExternal(k *kustomizev1.Kustomization) bool {
	return k.Spec.SourceRef.Kind == sourcev1.ExternalArtifactKind
}

// inCommits replaces the revisions of files in a status by those of commits. The artifact is nil if
// it isn't known.
func inCommits(status *kustomizev1.KustomizationStatus, artifact *fluxmeta.Artifact) {
	commit := func(revision, otherwise string) string {
		if artifact.HasRevision(revision) {
			return artifact.Metadata[originKey]
		}
		return otherwise
	}
	status.LastAttemptedRevision = commit(status.LastAttemptedRevision, "")
	status.LastAppliedRevision = commit(status.LastAppliedRevision, status.LastAppliedOriginRevision)
}
