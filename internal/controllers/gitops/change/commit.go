package change

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/git"
	"github.com/drover-dev/drover/internal/git/flux"
)

// Deadlines of a commit, and of each exchange with the Git server that it takes.
const (
	commitTimeout   = 2 * time.Minute
	exchangeTimeout = 30 * time.Second
)

// findRepository finds the repository and the credentials that are bound to it. Nothing is sent
// anywhere before that.
func (c *Controller) findRepository(ctx context.Context, s *scope) error {
	name := client.ObjectKey{Namespace: s.change.Namespace, Name: s.change.Spec.FluxConfig}
	config, err := connection.Find(ctx, c.Client, name)
	if apierrors.IsNotFound(err) {
		return denied(fmt.Sprintf("FluxConfig %q not found in namespace %q", name.Name, name.Namespace))
	}
	if err != nil {
		return err
	}
	if s.repository, err = connection.Of(config.Spec); err != nil {
		return denied(fmt.Sprintf("FluxConfig %q: %v", name.Name, err))
	}
	if s.repository.Namespace != c.FluxNamespace {
		return denied(fmt.Sprintf("FluxConfig %q: spec.systemNamespace is %q, but Flux is in namespace %q", name.Name, s.repository.Namespace, c.FluxNamespace))
	}
	return c.findCredentials(ctx, s)
}

func (c *Controller) findCredentials(ctx context.Context, s *scope) error {
	key := client.ObjectKey{Namespace: c.FluxNamespace, Name: anywherev1.GitCredentials}
	found, err := c.Secrets.Get(ctx, "Secret", key)
	if apierrors.IsNotFound(err) {
		return denied("The repository is not connected; ask an administrator to connect it with drover gitops enable")
	}
	if err != nil {
		return err
	}
	if problem := c.plane().Deny(s.repository, found.Meta, s.change.Namespace); problem != "" {
		return denied(problem)
	}
	s.credentials = found.Meta
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: found.Data}
	if s.remote, err = flux.FromSecret(secret, s.repository.URL, s.repository.Branch); err != nil {
		return denied(err.Error())
	}
	return nil
}

// plane returns what decides about connections.
func (c *Controller) plane() connection.Plane {
	return connection.Plane{FluxNamespace: c.FluxNamespace, ManagementCluster: c.ManagementCluster}
}

// commit commits the change, unless another one uses the repository. It is safe to repeat.
func (c *Controller) commit(ctx context.Context, s *scope) error {
	repository := s.repository.Canonical()
	if !c.repositories.acquire(repository, ctrl.Request{NamespacedName: s.visit.Key()}) {
		return &reconcile.Wait{Reason: droverv1.GitQueuedReason, Message: "Waiting for another change of the repository", After: retryUnavailable}
	}
	defer c.repositories.release(repository)
	edit, err := c.newEdit(ctx, s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	remote, err := git.New(s.remote, git.Options{Limits: git.Limits{Timeout: exchangeTimeout}, Clock: c.Clock})
	if err != nil {
		return outcomeOf(err)
	}
	result, err := remote.Update(ctx, message(s.change), edit)
	if err != nil {
		return outcomeOf(err)
	}
	s.facts.committed, s.facts.committedAt = true, c.Clock.Now()
	s.facts.commit, s.facts.changed = result.Commit, result.Changed
	return nil
}

// message describes the commit.
func message(change *droverv1.GitChange) git.Message {
	subject := "Update cluster " + change.Spec.Cluster
	if change.Spec.Action == droverv1.GitRemove {
		subject = "Remove cluster " + change.Spec.Cluster
	}
	return git.Message{
		Subject: subject, Body: fmt.Sprintf("Requested by GitChange %s/%s.", change.Namespace, change.Name),
		OnBehalfOf: change.Spec.RequestedBy, Command: change.Spec.Command,
	}
}
