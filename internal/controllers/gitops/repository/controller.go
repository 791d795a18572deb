// Package repository connects FluxConfigs with Flux: it creates the GitRepository that fetches the
// branch of a FluxConfig, if an administrator has opened the repository to its namespace, and shows
// in the status of the FluxConfig what Flux does with it.
//
// It never reads credentials, and never changes a GitRepository that somebody else created. Start
// with Reconcile, then status.go.
package repository

import (
	"context"
	"fmt"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/gitops/fleet"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// fetchInterval is how often Flux fetches a branch that nobody announced a push to.
const fetchInterval = time.Minute

// Controller reconciles FluxConfigs.
type Controller struct {
	Client client.Client
	// Metadata reads the metadata of Secrets from a cache.
	Metadata client.Reader
	// Reports are what the controller of fleets found in repositories.
	Reports *fleet.Reports
	Plane   connection.Plane
	Support fleet.Support
}

// scope is one reconcile of a FluxConfig.
type scope struct {
	config *anywherev1.FluxConfig
	// key is that of the GitRepository and of the Secret.
	key    client.ObjectKey
	wanted connection.Repository
	facts  facts
}

// Reconcile connects a FluxConfig with Flux.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	opening := reconcile.Opening[*anywherev1.FluxConfig]{Client: c.Client}
	visit, err := opening.Open(ctx, request.NamespacedName, &anywherev1.FluxConfig{})
	if err != nil {
		return ctrl.Result{}, err
	}
	if visit == nil || visit.Deleting() {
		return ctrl.Result{}, c.prune(ctx)
	}
	s := &scope{config: visit.Object, key: connection.Key(visit.Object)}
	err = reconcile.Run(ctx, s, []reconcile.Step[*scope]{
		{Doing: "checking the connection", Run: c.connect},
		{Doing: "creating the GitRepository", Run: c.ensureRepository},
		{Doing: "observing Flux", Run: c.observe},
	})
	if err == nil {
		err = c.pruneUnused(ctx, s)
	}
	if err == nil {
		s.facts.report = c.Reports.Get(request.NamespacedName)
		setStatus(visit.Object, &s.facts)
	}
	return visit.Close(ctx, err, 0)
}

// connect compares the FluxConfig with the Secret that has the credentials.
func (c *Controller) connect(ctx context.Context, s *scope) error {
	var secret metav1.Object
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	switch err := c.Metadata.Get(ctx, s.key, found); {
	case err == nil:
		secret = found
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading the metadata of Secret %q: %w", s.key, err)
	}
	connected := c.Plane.Connect(s.config, secret)
	s.wanted, s.facts.denied = connected.Repository, text.Sentence(connected.Denied)
	return nil
}

// ensureRepository makes Flux fetch the branch, unless another GitRepository has the name.
func (c *Controller) ensureRepository(ctx context.Context, s *scope) error {
	there := &sourcev1.GitRepository{}
	err := c.Client.Get(ctx, s.key, there)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading GitRepository %q: %w", s.key, err)
	}
	exists := err == nil
	if exists {
		s.facts.repository = there
	}
	want := s.gitRepository()
	switch {
	case s.facts.denied != "":
		return nil
	case exists && !isOurs(there):
		if !s.wanted.IsFollowed(there) {
			s.facts.denied = fmt.Sprintf("GitRepository %q exists already and fetches another repository or branch", s.key)
		}
		return nil
	case exists && s.wanted.IsSource(there) && !s.wanted.IsFollowed(there):
		s.facts.denied = fmt.Sprintf("GitRepository %q fetches branch %q for another FluxConfig: use the same branch", s.key, there.Spec.Reference.Branch)
		return nil
	case exists && isCurrent(there, want):
		return nil
	}
	return fleet.Apply(ctx, c.Client, want)
}

// isOurs reports whether Drover created a GitRepository.
func isOurs(r *sourcev1.GitRepository) bool { return r.Labels[fleet.ManagedByLabel] == fleet.ManagedBy }

func isCurrent(is, want *sourcev1.GitRepository) bool {
	a, b := is.Spec, want.Spec
	return a.URL == b.URL && a.Interval == b.Interval && a.SecretRef != nil && *a.SecretRef == *b.SecretRef &&
		a.Reference != nil && a.Reference.Branch == b.Reference.Branch
}

func (s *scope) gitRepository() *sourcev1.GitRepository {
	r := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name, Labels: map[string]string{fleet.ManagedByLabel: fleet.ManagedBy}},
		Spec: sourcev1.GitRepositorySpec{
			URL: s.wanted.URL, Interval: metav1.Duration{Duration: fetchInterval},
			SecretRef: &fluxmeta.LocalObjectReference{Name: anywherev1.GitCredentials}, Reference: &sourcev1.GitRepositoryRef{Branch: s.wanted.Branch},
		},
	}
	r.SetGroupVersionKind(sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind))
	return r
}

// observe reads the Kustomizations of the clusters in the namespace.
func (c *Controller) observe(ctx context.Context, s *scope) error {
	if s.facts.denied != "" {
		return nil
	}
	all, err := fleet.Kustomizations(ctx, c.Client)
	if err != nil {
		return err
	}
	for i := range all {
		k := &all[i]
		if fleet.SourceOf(k) == s.key && (k.Namespace == s.config.Namespace || k.Spec.TargetNamespace == s.config.Namespace) {
			s.facts.kustomizations = append(s.facts.kustomizations, *k)
		}
	}
	return nil
}
