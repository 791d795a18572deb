// Package tool is the interface between orchestration and package tools. Orchestration decides
// which add-on is installed on which cluster, in which version, with which values, when and in what
// order. A tool installs it, and knows nothing of the rest.
//
// Start with Tool; docs/design records the reasons. Package helm implements it for charts and
// package manifests for plain manifests.
package tool

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
)

// Tool installs add-ons on clusters. Its methods are safe for concurrent use, but callers run only
// one write per installation at a time.
type Tool interface {
	// Observe returns the state of an installation from the cluster's watches, without a request.
	// It returns ErrNotSynced until the watches have synced; an event follows then.
	Observe(cluster *workload.Cluster, id ID) (State, error)
	// Diff returns what Apply would change, and changes nothing.
	Diff(ctx context.Context, cluster *workload.Cluster, want Want) ([]Change, error)
	// Apply installs or upgrades, and returns when the objects are written, not when they are
	// ready. An installation that is already as wanted gets no new revision. Apply can be repeated
	// after it was interrupted at any point.
	Apply(ctx context.Context, cluster *workload.Cluster, want Want) (State, error)
	// Remove uninstalls. It succeeds if the installation does not exist.
	Remove(ctx context.Context, cluster *workload.Cluster, want Want) error
	// Health reports whether the objects of an installation are ready.
	Health(ctx context.Context, cluster *workload.Cluster, want Want) (Health, error)
}

// Reverter is a Tool that can roll back.
type Reverter interface {
	// Revert creates a new revision from an earlier one, or from the previous one if revision is 0.
	Revert(ctx context.Context, cluster *workload.Cluster, want Want, revision int) (State, error)
	// History returns the revisions that are kept, newest first.
	History(ctx context.Context, cluster *workload.Cluster, id ID) ([]Revision, error)
}

// Describer is a Tool whose packages say how they depend on Kubernetes.
type Describer interface {
	// Describe returns what the wanted package says.
	Describe(ctx context.Context, want Want) (Description, error)
}

// Description is what a package says about itself.
type Description struct {
	// Kubernetes is the range of supported versions; empty means all.
	Kubernetes  string
	Annotations map[string]string
}

// ErrNotSynced reports that the watches of a cluster have not synced.
var ErrNotSynced = errors.New("watches of the cluster have not synced")

// TerminalError is an error that a retry doesn't fix: the package or its values must change.
type TerminalError struct{ Err error }

func (t *TerminalError) Error() string { return t.Err.Error() }

func (t *TerminalError) Unwrap() error { return t.Err }

// ID identifies an installation on a cluster.
type ID struct{ Namespace, Name string }

// Want is the desired state of an add-on on one cluster.
type Want struct {
	ID ID
	// Package is the source of the package, and Resolved its resolved version.
	Package  artifact.Ref
	Resolved artifact.Resolved
	Values   map[string]any
	Options  addonsv1.HelmOptions
	Health   []addonsv1.HealthCheck
	// Ignore lists fields that Diff and Correct leave alone.
	Ignore []addonsv1.IgnoreRule
	// Correct makes Apply rewrite the objects of the current revision, and Diff compare with them,
	// to detect and correct drift.
	Correct bool
}

// State is the state of an installation.
type State struct {
	Found    bool
	Revision int
	// Status is one of the constants below, which are Helm's.
	Status string
	// Stamp changes whenever the tool's record of the installation changes.
	Stamp string
}

// Values of State.Status.
const (
	Deployed = "deployed"
	// Failed reports that waiting longer does not help.
	Failed          = "failed"
	Uninstalled     = "uninstalled"
	Uninstalling    = "uninstalling"
	PendingInstall  = "pending-install"
	PendingUpgrade  = "pending-upgrade"
	PendingRollback = "pending-rollback"
	Superseded      = "superseded"
	Unknown         = "unknown"
)

// Revision is a current or past revision of an installation.
type Revision struct {
	Number      int    `json:"revision"`
	Status      string `json:"status"`
	Package     string `json:"chart"`
	Updated     string `json:"updated"`
	Description string `json:"description"`
}

// Object identifies an object on a cluster.
type Object struct {
	schema.GroupVersionKind

	Namespace, Name string
}

// Change is what Apply would do to an object.
type Change struct {
	Object Object
	// Action is Create, Update or Delete.
	Action string
	// Diff has a line for each field, with values of Secrets masked.
	Diff string
}

// Actions of a Change.
const (
	Create = "Create"
	Update = "Update"
	Delete = "Delete"
)

// Health is the readiness of the objects of an installation.
type Health struct {
	Ready bool
	// Failed says that waiting longer does not help.
	Failed bool
	// Message names the first objects that are not ready, and why.
	Message string
}
