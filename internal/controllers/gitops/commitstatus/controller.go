// Package commitstatus reports to the forge what became of the newest commit of a repository, where
// people see it beside the commit and in pull requests.
//
//	GitRepository, FluxConfigs ──▶ summarize ──▶ pending ──▶ success or failure
//	                                                │
//	                                                └▶ overtaken by the next commit
//
// A commit has one status for each management plane, whatever the number of clusters and
// namespaces. It is sent when it changes. A forge that rejects it is asked again when the
// credentials or the status have changed. The package never reads a repository and decides nothing:
// FluxConfigs have the facts. Start with Reconcile, then summary.go.
package commitstatus

import (
	"context"
	"fmt"
	"strings"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/git/forge"
	"github.com/drover-dev/drover/internal/model/addons/sources"
)

const (
	failedReason = "CommitStatusFailed"
	// retrySend is when to send a status again that didn't arrive.
	retrySend = time.Minute
	// sendTimeout bounds the exchange with a forge.
	sendTimeout = 20 * time.Second
)

// Secrets reads credentials.
type Secrets interface {
	// Get returns the content and the metadata of a Secret, or a NotFound error.
	Get(ctx context.Context, kind string, key client.ObjectKey) (sources.Content, error)
}

// Controller reconciles GitRepositories of connected FluxConfigs.
type Controller struct {
	Client  client.Client
	Secrets Secrets
	Events  record.EventRecorder
	// ManagementCluster is the name of this management plane, if it has one.
	ManagementCluster string

	memory reconcile.Memory[memory]
}

// memory is what was sent for a repository.
type memory struct {
	sent forge.Status
	// rejected is the status that a forge rejected, with the credentials that it was sent with.
	rejected    forge.Status
	credentials string
	// announced is the last problem that an event told.
	announced string
}

// scope is one reconcile of a repository.
type scope struct {
	memory

	repository *sourcev1.GitRepository
	options    forge.Options
	// version identifies the credentials.
	version string
}

// Reconcile sends the status of the newest commit if it has changed.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	repository := &sourcev1.GitRepository{}
	if err := c.Client.Get(ctx, request.NamespacedName, repository); err != nil {
		c.memory.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	want, err := c.wanted(ctx, repository)
	if err != nil || want == nil {
		return ctrl.Result{}, err
	}
	s := &scope{memory: c.memory.Get(request.NamespacedName), repository: repository}
	found, err := c.locate(ctx, s)
	if err == nil && found {
		err = c.send(ctx, s, *want)
	}
	c.memory.Update(request.NamespacedName, func(m *memory) { *m = s.memory })
	return reconcile.Result(err, 0)
}

// wanted returns the status of the newest commit, or nil if there is none to report.
func (c *Controller) wanted(ctx context.Context, repository *sourcev1.GitRepository) (*forge.Status, error) {
	commit := commitOf(repository)
	if commit == "" {
		return nil, nil
	}
	all := &anywherev1.FluxConfigList{}
	if err := c.Client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing FluxConfigs: %w", err)
	}
	var members []anywherev1.FluxConfig
	for i := range all.Items {
		if config := &all.Items[i]; connection.Key(config) == client.ObjectKeyFromObject(repository) && isConnected(config) {
			members = append(members, *config)
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	status := summarize(members, repository.Status.Artifact.Revision)
	status.Commit, status.Context = commit, c.name()
	return &status, nil
}

// name tells statuses of management planes apart that share a repository.
func (c *Controller) name() string {
	if c.ManagementCluster == "" {
		return "drover"
	}
	return "drover/" + c.ManagementCluster
}

// commitOf returns the full ID of the newest commit: that of main@sha1:0123….
func commitOf(repository *sourcev1.GitRepository) string {
	if repository.Status.Artifact == nil {
		return ""
	}
	_, commit, _ := strings.Cut(repository.Status.Artifact.Revision, ":")
	return commit
}

// locate finds the forge and the token. It reports false if the repository is on no forge, or if
// the credentials are not bound to it or have no token.
func (c *Controller) locate(ctx context.Context, s *scope) (bool, error) {
	key := client.ObjectKeyFromObject(s.repository)
	found, err := c.Secrets.Get(ctx, "Secret", key)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Secret %q: %w", key, err)
	}
	annotations := found.Meta.GetAnnotations()
	bound := connection.Repository{URL: annotations[anywherev1.GitURLAnnotation]}
	if !bound.IsSource(s.repository) {
		return false, nil
	}
	var ok bool
	s.options, ok, err = forge.Locate(forge.Location{
		URL: s.repository.Spec.URL, Kind: forge.Kind(annotations[anywherev1.GitForgeAnnotation]), BaseURL: annotations[anywherev1.GitForgeURLAnnotation],
	})
	if err != nil || !ok {
		c.announce(s, err)
		return false, nil
	}
	s.options.Token, s.options.CA = tokenOf(s.repository.Spec.URL, found.Data), found.Data["ca.crt"]
	s.version = string(found.Meta.GetUID()) + "/" + found.Meta.GetResourceVersion()
	return s.options.Token != "", nil
}

// announce tells administrators once what they have to change. Their change triggers a reconcile.
func (c *Controller) announce(s *scope, err error) {
	if err == nil || s.announced == err.Error() {
		return
	}
	s.announced = err.Error()
	c.Events.Event(s.repository, corev1.EventTypeWarning, failedReason, text.Truncate(text.Sentence(err.Error())))
}
