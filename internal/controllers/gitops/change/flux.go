package change

import (
	"cmp"
	"context"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
	"github.com/drover-dev/drover/internal/controllers/gitops/progress"
)

// fluxFacts are what Flux says about the repository and the cluster.
type fluxFacts struct {
	// fetched is the revision that Flux has fetched last, if that succeeded.
	fetched string
	// requested and handled are when a fetch was last requested and carried out.
	requested, handled time.Time
	// fetchProblem is why the repository can't be fetched.
	fetchProblem string

	// hasKustomization means that Flux applies the cluster, and hasCluster that it exists.
	hasKustomization, hasCluster bool
	// applied and attempted are revisions, and applyProblem why the last attempt failed.
	applied, attempted, applyProblem string
}

// observeFlux reads what Flux has fetched and applied.
func (c *Controller) observeFlux(ctx context.Context, s *scope) error {
	cluster := &anywherev1.Cluster{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: s.change.Namespace, Name: s.change.Spec.Cluster}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	s.facts.observed = true
	s.facts.flux.hasCluster = err == nil
	namespace := s.change.Namespace
	if err == nil && cluster.IsSelfManaged() { // It is applied with an account of Flux's namespace.
		namespace = c.FluxNamespace
	}
	if err := c.observeKustomization(ctx, s, namespace); err != nil {
		return err
	}
	source, err := c.source(ctx)
	if err == nil && source != nil {
		s.facts.flux.observeSource(source)
	}
	return err
}

// source returns the GitRepository of the repository, or nil if there is none.
func (c *Controller) source(ctx context.Context) (*sourcev1.GitRepository, error) {
	found := &sourcev1.GitRepository{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.FluxNamespace, Name: anywherev1.GitCredentials}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (c *Controller) observeKustomization(ctx context.Context, s *scope, namespace string) error {
	all, err := fleet.Kustomizations(ctx, c.Client, client.InNamespace(namespace), client.MatchingLabels{anywherev1.GitClusterLabel: s.change.Spec.Cluster})
	if err != nil || len(all) == 0 {
		return err
	}
	// The directories of add-ons and packages have Kustomizations too, with longer names.
	first := slices.MinFunc(all, func(a, b kustomizev1.Kustomization) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	s.facts.flux.observeKustomization(&first)
	return nil
}

func (f *fluxFacts) observeSource(source *sourcev1.GitRepository) {
	f.requested = progress.RequestTime(source.Annotations[fluxmeta.ReconcileRequestAnnotation])
	f.handled = progress.RequestTime(source.Status.LastHandledReconcileAt)
	ready := meta.FindStatusCondition(source.Status.Conditions, fluxmeta.ReadyCondition)
	switch {
	case ready == nil:
	case ready.Status == metav1.ConditionTrue && source.Status.Artifact != nil:
		f.fetched = source.Status.Artifact.Revision
	case ready.Status == metav1.ConditionFalse:
		f.fetchProblem = ready.Message
	}
}

func (f *fluxFacts) observeKustomization(k *kustomizev1.Kustomization) {
	f.hasKustomization = true
	f.applied, f.attempted = k.Status.LastAppliedRevision, k.Status.LastAttemptedRevision
	if ready := meta.FindStatusCondition(k.Status.Conditions, fluxmeta.ReadyCondition); ready != nil && ready.Status == metav1.ConditionFalse {
		f.applyProblem = ready.Message
	}
}

// includes reports whether a revision is the commit of a change or a later one.
func (f *facts) includes(revision string) bool {
	if revision == "" || f.commit == "" {
		return false
	}
	return progress.HasCommit(revision, f.commit) || revision == f.flux.fetched && progress.IsAfter(f.flux.handled, f.committedAt)
}

// needsFetch reports whether no fetch was requested since the commit.
func (f *facts) needsFetch() bool {
	return f.commit != "" && !progress.HasCommit(f.flux.fetched, f.commit) && !progress.IsAfter(f.flux.requested, f.committedAt)
}

// requestFetch asks Flux to fetch the commit now instead of after its interval.
func (c *Controller) requestFetch(ctx context.Context, s *scope) error {
	if !s.facts.needsFetch() {
		return nil
	}
	source, err := c.source(ctx)
	if err != nil || source == nil {
		return err
	}
	at := c.Clock.Now()
	if earliest := progress.EarliestRequest(s.facts.committedAt); at.Before(earliest) {
		at = earliest
	}
	before := source.DeepCopy()
	metav1.SetMetaDataAnnotation(&source.ObjectMeta, fluxmeta.ReconcileRequestAnnotation, at.Format(time.RFC3339Nano))
	return client.IgnoreNotFound(c.Client.Patch(ctx, source, client.MergeFrom(before)))
}
