// Package tool is the seam between orchestration and package tools. Orchestration knows which add-on goes onto which cluster, in which
// version, with which values, when and in what order. A tool knows how to put it there, and nothing of the rest.
//
// What a tool must be able to do is Tool; docs/design has the reasons. Helm is one, plain manifests are another.
package tool

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
)

// Tool puts add-ons onto clusters. Its methods are safe for concurrent use, but nobody calls two of them that write for the same
// installation at once.
type Tool interface {
	// Observe says what is on the cluster, from what its watches told. It makes no request, and fails with ErrNotSynced if the watches
	// have not told all yet; an event follows when they have.
	Observe(cluster *workload.Cluster, id ID) (State, error)
	// Diff says what Apply would change on the cluster, and changes nothing.
	Diff(ctx context.Context, cluster *workload.Cluster, want Want) ([]Change, error)
	// Apply makes the installation as wanted and returns when the objects are written, not when they are ready. What is there already and
	// is as wanted gets no new revision. It may be called again after it was killed at any point.
	Apply(ctx context.Context, cluster *workload.Cluster, want Want) (State, error)
	// Remove takes the installation away. That it is not there is no error.
	Remove(ctx context.Context, cluster *workload.Cluster, want Want) error
	// Health says whether the objects of the installation are ready.
	Health(ctx context.Context, cluster *workload.Cluster, want Want) (Health, error)
}

// Reverter is a Tool that can go back to an earlier revision.
type Reverter interface {
	// Revert makes a new revision out of an earlier one, of the one before the current if revision is 0.
	Revert(ctx context.Context, cluster *workload.Cluster, want Want, revision int) (State, error)
	// History returns the revisions that are kept, the newest first.
	History(ctx context.Context, cluster *workload.Cluster, id ID) ([]Revision, error)
}

// ErrNotSynced says that the watches of a cluster have not told all yet.
var ErrNotSynced = errors.New("watches of the cluster have not synced")

// TerminalError is an error that a retry does not mend: the package or its values must change.
type TerminalError struct{ Err error }

func (t *TerminalError) Error() string { return t.Err.Error() }

func (t *TerminalError) Unwrap() error { return t.Err }

// ID names an installation on a cluster.
type ID struct{ Namespace, Name string }

// Want is an add-on as it should be on one cluster.
type Want struct {
	ID ID
	// Package is where it comes from, and Resolved the version that was chosen.
	Package  artifact.Ref
	Resolved artifact.Resolved
	Values   map[string]any
	Options  addonsv1.HelmOptions
	Health   []addonsv1.HealthCheck
	// Ignore names fields that others may change: Diff does not tell of them and Correct does not touch them.
	Ignore []addonsv1.IgnoreRule
	// Correct makes Apply write the objects of the current revision again, and Diff compare with those, for an installation that is as
	// wanted but whose objects were changed by others.
	Correct bool
}

// State is what a tool knows of an installation.
type State struct {
	Found    bool
	Revision int
	// Status is the tool's word for it. Those of Helm are used by all.
	Status string
	// Stamp changes whenever what the tool keeps on the cluster about the installation changes.
	Stamp string
}

// Words for State.Status.
const (
	Deployed        = "deployed"
	Failed          = "failed"
	Uninstalled     = "uninstalled"
	Uninstalling    = "uninstalling"
	PendingInstall  = "pending-install"
	PendingUpgrade  = "pending-upgrade"
	PendingRollback = "pending-rollback"
	Superseded      = "superseded"
	Unknown         = "unknown"
)

// Revision is one of an installation's past.
type Revision struct {
	Number      int    `json:"revision"`
	Status      string `json:"status"`
	Package     string `json:"chart"`
	Updated     string `json:"updated"`
	Description string `json:"description"`
}

// Object names an object on a cluster.
type Object struct {
	schema.GroupVersionKind

	Namespace, Name string
}

// Change is what Apply would do to an object.
type Change struct {
	Object Object
	// Action is Create, Update or Delete.
	Action string
	// Diff has a line for each field, without values of Secrets.
	Diff string
}

// Actions of a Change.
const (
	Create = "Create"
	Update = "Update"
	Delete = "Delete"
)

// Health is the state of an installation's objects.
type Health struct {
	Ready bool
	// Failed says that waiting longer does not help.
	Failed bool
	// Message names a few objects that are not ready and why.
	Message string
}
