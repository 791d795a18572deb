// Package fleet turns the clusters of a Git repository into Kustomizations of Flux: one for each
// directory of a cluster, in the namespace of the cluster, applied with an account of that
// namespace. A spec that is rejected holds back no other cluster, and who may write to the
// repository can't reach into other namespaces.
//
//	GitRepository ──▶ artifact ──▶ tree ──▶ facts of each cluster ──▶ decide ──▶ Kustomizations
//
// Each cluster has a source, an ExternalArtifact, whose revision is a digest of its files, so that
// a commit doesn't make Flux apply every cluster again. A Flux that doesn't support this applies
// the GitRepository itself.
//
// The package never applies a spec and never deletes a Cluster: Flux does. What can't be read
// changes nothing. Start with Reconcile, then decide.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/gitops/connection"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

// Reasons of events.
const (
	unreadableReason   = "RepositoryUnreadable"
	unconfirmedReason  = anywherev1.RemovalUnconfirmedReason
	withdrawnReason    = "RemovalWithdrawn"
	notConnectedReason = "NamespaceNotConnected"
)

// retryRead is when to read an artifact again that couldn't be read.
const retryRead = 30 * time.Second

// Controller reconciles GitRepositories that FluxConfigs name.
type Controller struct {
	Client client.Client
	// Metadata reads the metadata of Secrets from a cache.
	Metadata client.Reader
	Events   record.EventRecorder
	// Reports receives what can't be seen from Kustomizations.
	Reports *Reports
	Plane   connection.Plane
	// Support tells whether each cluster may have a source of its own.
	Support Support
	// HTTP downloads artifacts. SetupWithManager sets it.
	HTTP *http.Client

	memory reconcile.Memory[memory]
}

// memory is what was found in the newest artifact of a repository.
type memory struct {
	digest  string
	trees   map[string]tree
	granted map[grant]bool
	// announced are the messages of events that were sent.
	announced map[string]bool
}

// scope is one reconcile of a repository.
type scope struct {
	memory

	repository *sourcev1.GitRepository
	// members are the connected FluxConfigs.
	members []member
	reports map[client.ObjectKey]*Report
	// external means that each cluster has a source of its own, which changes only with its files.
	external bool
	// current are the messages of events that still hold.
	current map[string]bool
}

// member is a FluxConfig that is connected to the repository.
type member struct {
	config client.ObjectKey
	path   string
}

// Reconcile makes the Kustomizations of a repository what its newest artifact says.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	repository := &sourcev1.GitRepository{}
	if err := c.Client.Get(ctx, request.NamespacedName, repository); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.memory.Forget(request.NamespacedName)
			return ctrl.Result{}, c.pruneExternalArtifacts(ctx, request.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	s, err := c.open(ctx, repository)
	if err != nil {
		return ctrl.Result{}, err
	}
	// A suspended repository leaves everything as it is: its management cluster may be moving.
	if repository.Status.Artifact == nil || repository.Spec.Suspend || !repository.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // An event follows.
	}
	if err := c.chooseSources(ctx, s); err != nil {
		return reconcile.Result(err, 0)
	}
	err = reconcile.Run(ctx, s, []reconcile.Step[*scope]{
		{Doing: "reading the repository", Run: c.readArtifact},
		{Doing: "applying the repository", Run: c.applyClusters},
	})
	c.close(request.NamespacedName, s)
	return reconcile.Result(err, 0)
}

// open finds the FluxConfigs that are connected to a repository.
func (c *Controller) open(ctx context.Context, repository *sourcev1.GitRepository) (*scope, error) {
	key := client.ObjectKeyFromObject(repository)
	s := &scope{memory: c.memory.Get(key), repository: repository, reports: map[client.ObjectKey]*Report{}, current: map[string]bool{}}
	secret, err := c.credentials(ctx, key)
	if err != nil {
		return nil, err
	}
	all := &anywherev1.FluxConfigList{}
	if err := c.Client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing FluxConfigs: %w", err)
	}
	valid := map[client.ObjectKey]bool{}
	for i := range all.Items {
		config := &all.Items[i]
		r := c.Plane.Connect(config, secret)
		connected := connection.Key(config) == key && r.Denied == "" && r.IsFollowed(repository)
		if connected {
			s.members = append(s.members, member{client.ObjectKeyFromObject(config), r.Path})
			s.reports[client.ObjectKeyFromObject(config)] = &Report{}
		}
		valid[client.ObjectKeyFromObject(config)] = connected || connection.Key(config) != key
	}
	c.Reports.keep(valid)
	return s, nil
}

// credentials returns the metadata of the Secret with the credentials, or nil.
func (c *Controller) credentials(ctx context.Context, key client.ObjectKey) (metav1.Object, error) {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	switch err := c.Metadata.Get(ctx, key, meta); {
	case err == nil:
		return meta, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, fmt.Errorf("reading the metadata of Secret %q: %w", key, err)
	}
}

// readArtifact reads the paths of all members from the artifact, unless that was done before.
func (c *Controller) readArtifact(ctx context.Context, s *scope) error {
	artifact := s.repository.Status.Artifact
	if s.digest == artifact.Digest && s.hasPaths() {
		return nil
	}
	data, err := download(ctx, c.HTTP, artifact)
	if err == nil {
		err = s.parse(data)
	}
	if err != nil {
		c.announce(s, s.repository, unreadableReason, text.Sentence(err.Error()))
		for _, report := range s.reports {
			report.Problems = append(report.Problems, err.Error())
		}
		return &reconcile.Wait{Reason: unreadableReason, Message: err.Error(), After: retryRead}
	}
	s.digest, s.granted = artifact.Digest, map[grant]bool{}
	return nil
}

func (s *scope) hasPaths() bool {
	return !slices.ContainsFunc(s.members, func(m member) bool { _, ok := s.trees[m.path]; return !ok })
}

// parse replaces the trees by those of an artifact.
func (s *scope) parse(data []byte) error {
	files, err := unpack(data)
	if err != nil {
		return err
	}
	trees := map[string]tree{}
	for _, m := range s.members {
		if _, done := trees[m.path]; done {
			continue
		}
		if trees[m.path], err = read(files, m.path); err != nil {
			return err
		}
	}
	s.trees = trees
	return nil
}

// announce sends an event unless the last reconcile sent it, too.
func (c *Controller) announce(s *scope, about client.Object, reason, message string) {
	message = text.Truncate(message)
	if !s.announced[message] {
		c.Events.Event(about, corev1.EventTypeWarning, reason, message)
	}
	s.current[message] = true
}

// close remembers what was read and publishes the reports.
func (c *Controller) close(key client.ObjectKey, s *scope) {
	s.announced = maps.Clone(s.current)
	c.memory.Update(key, func(m *memory) { *m = s.memory })
	for config, report := range s.reports {
		report.Revision = s.repository.Status.Artifact.Revision
		c.Reports.set(config, *report)
	}
}

// problem adds a problem to the reports of a namespace.
func (s *scope) problem(namespace, message string) {
	for key, report := range s.reports {
		if key.Namespace == namespace {
			report.Problems = append(report.Problems, message)
		}
	}
}

// errUnowned means that the name of a Kustomization is taken.
var errUnowned = errors.New("it exists already, and Drover didn't create it for this repository")
