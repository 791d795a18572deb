// Package lifecycle plans and runs what create, upgrade and delete do to a cluster: it runs
// preflight checks, applies the objects of a spec to a management plane, waits for the controllers
// there, and writes the cluster's files.
//
// It uses the privileges of the person who runs it and never reconciles anything itself. There is
// one Planner for workload clusters and one for management clusters; each declares its phases.
// Recording and resuming phases is up to package phase. Start with Planner.
package lifecycle

import (
	"context"
	"time"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/model/lockstep"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
)

// Planner plans what create, upgrade and delete do to one cluster.
type Planner interface {
	Create() (*phase.Plan, error)
	Upgrade() (*phase.Plan, error)
	Delete() (*phase.Plan, error)
	// Ready reports whether the cluster is ready, so that its deletion requires a confirmation.
	Ready(context.Context) (bool, error)
	// Rotate plans a new key for the encryption of Secrets.
	Rotate() (*phase.Plan, error)
	// Renew plans new certificates for components.
	Renew(components []Component) (*phase.Plan, error)
	// Differences returns the fields that an upgrade would change. It changes nothing.
	Differences(context.Context) ([]Difference, error)
	// Versions returns the versions of Kubernetes and Drover before and after an upgrade.
	Versions(context.Context) ([]Difference, error)
	// AddOns returns the add-ons that an upgrade of Kubernetes waits for, as far as the caller may
	// read them.
	AddOns(context.Context) ([]lockstep.AddOn, error)
}

var (
	_ Planner = (*Workload)(nil)
	_ Planner = (*Management)(nil)
)

// Verb is what a command does to a cluster.
type Verb string

// The verbs.
const (
	Create  Verb = "create"
	Upgrade Verb = "upgrade"
	Delete  Verb = "delete"
)

// Names of phases. They appear in output, checkpoints and traces and don't change, so that an
// interrupted command of an earlier Drover can be resumed.
const (
	SetupAndValidate             = "SetupAndValidate"
	CreateBootstrapCluster       = "CreateBootstrapCluster"
	CreateWorkloadCluster        = "CreateWorkloadCluster"
	MoveManagementCluster        = "MoveManagementCluster"
	InstallEKSAComponents        = "InstallEKSAComponents"
	InstallAddOns                = "InstallAddOns"
	DeleteBootstrap              = "DeleteBootstrap"
	UpdateSecrets                = "UpdateSecrets"
	UpgradeNeeded                = "UpgradeNeeded"
	PauseEksAAndFluxReconcile    = "PauseEksAAndFluxReconcile"
	InstallCAPI                  = "InstallCAPI"
	MoveManagementToBootstrap    = "MoveManagementToBootstrap"
	UpgradeWorkloadCluster       = "UpgradeWorkloadCluster"
	MoveManagementToWorkload     = "MoveManagementToWorkload"
	UpdateClusterAndGitResources = "UpdateClusterAndGitResources"
	ResumeFluxReconcile          = "ResumeFluxReconcile"
	DeleteWorkloadCluster        = "DeleteWorkloadCluster"
	CleanupGitRepo               = "CleanupGitRepo"
	RotateEncryptionKey          = "RotateEncryptionKey"
	RestoreClusters              = "RestoreClusters"
	TakeOverClusters             = "TakeOverClusters"
	RenewEtcdCertificates        = "RenewEtcdCertificates"
	RenewControlPlaneCerts       = "RenewControlPlaneCertificates"
)

// Summaries of phases that more than one plan has.
const (
	summaryValidate        = "Validate the spec and run preflight checks"
	summaryBootstrap       = "Start a bootstrap plane on this machine"
	summaryBootstrapReady  = "Wait for the bootstrap plane"
	summaryMoveToBootstrap = "Move the cluster's objects to the bootstrap plane"
	summaryMoveBack        = "Upgrade Drover on the cluster and move its objects back"
	summaryPauseOthers     = "Pause reconciliation of workload clusters and, with GitOps, Flux"
	summaryResumeOthers    = "Resume reconciliation of workload clusters and, with GitOps, Flux"
	summaryDelete          = "Delete the cluster, its machines and its addresses"
	summaryGitApplied      = "Verify that Flux has applied the spec, with GitOps"
	summaryGitCommitted    = "Commit the spec to Git, with GitOps"
	summaryGitRemoved      = "Verify that Git has no files of the cluster, with GitOps"
	summaryDeleteBootstrap = "Delete the bootstrap plane"
)

// Limits are timeouts; 0 means no timeout.
type Limits struct {
	// Etcd is the timeout of external etcd, which starts before the control plane.
	Etcd time.Duration
	// ControlPlane is the timeout of the whole control plane.
	ControlPlane time.Duration
	// Machine is the timeout of each worker.
	Machine time.Duration
	// Delete is the timeout of a deletion.
	Delete time.Duration
}

// Options are the user's settings.
type Options struct {
	Limits

	// Dir is the directory of the cluster's files, which go into a subdirectory of its name.
	Dir string
	// Again is the command line that resumes an interrupted run.
	Again string
	// Version is that of this Drover; the running build's if empty.
	Version string
	// SkipSkew skips the comparison of versions.
	SkipSkew bool
	// SkipFlux permits the upgrade of a cluster that Flux may revert.
	SkipFlux bool
	// SkipCapacity skips the check whether there are machines; a cluster waits for them.
	SkipCapacity bool
	// Kubeconfig is the file of the management plane's kubeconfig, for messages.
	Kubeconfig string
	// Undo limits a deletion to what an unfinished creation created, which may be nothing.
	Undo bool
}

func (o Options) version() string {
	if o.Version != "" {
		return o.Version
	}
	return version.Get().Version
}

// plan returns the plan of a verb. A deletion takes over whatever an earlier command left, whatever
// the spec was then.
func (o Options) plan(verb Verb, c *spec.Config, phases []phase.Phase) (*phase.Plan, error) {
	plan := &phase.Plan{Command: string(verb) + " cluster", Cluster: c.Cluster.Name, Phases: phases, Again: o.Again, Supersedes: verb == Delete}
	if verb == Delete {
		return plan, nil
	}
	var err error
	plan.Fingerprint, err = fingerprint(c)
	return plan, err
}
