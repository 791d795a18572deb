package workflow

// Names of phases, the same in what is printed, in records, in metrics and in traces.
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
)

// Verb is what is done with a cluster.
type Verb string

// The verbs.
const (
	Create  Verb = "create"
	Upgrade Verb = "upgrade"
	Delete  Verb = "delete"
)

// Command is a verb, on a management cluster or on a workload cluster of one.
type Command struct {
	Verb Verb
	// Workload means that there is a management cluster already.
	Workload bool
}

// String is how the user asked for it.
func (c Command) String() string { return string(c.Verb) + " cluster" }

// lists are the phases of each command, in order.
var lists = map[Command][]string{
	{Create, false}: {
		SetupAndValidate, CreateBootstrapCluster, CreateWorkloadCluster, MoveManagementCluster, InstallEKSAComponents, InstallAddOns, DeleteBootstrap,
	},
	{Create, true}: {SetupAndValidate, CreateWorkloadCluster, InstallAddOns},
	{Upgrade, false}: {
		SetupAndValidate, UpdateSecrets, UpgradeNeeded, PauseEksAAndFluxReconcile, CreateBootstrapCluster, InstallCAPI, MoveManagementToBootstrap,
		UpgradeWorkloadCluster, MoveManagementToWorkload, UpdateClusterAndGitResources, ResumeFluxReconcile, DeleteBootstrap,
	},
	{Upgrade, true}: {
		SetupAndValidate, PauseEksAAndFluxReconcile, UpgradeWorkloadCluster, UpdateClusterAndGitResources, ResumeFluxReconcile,
	},
	{Delete, false}: {
		SetupAndValidate, CreateBootstrapCluster, InstallCAPI, MoveManagementToBootstrap, DeleteWorkloadCluster, CleanupGitRepo, DeleteBootstrap,
	},
	{Delete, true}: {SetupAndValidate, DeleteWorkloadCluster, CleanupGitRepo},
}

// Phases are the names of the command's phases, in order.
func (c Command) Phases() []string { return lists[c] }

// summaries are what a person is told about a phase that says nothing else of itself.
var summaries = map[string]string{
	SetupAndValidate:             "Check the spec and everything it needs",
	CreateBootstrapCluster:       "Start a management plane on this machine for the time being",
	CreateWorkloadCluster:        "Make the cluster's machines and Kubernetes on them",
	MoveManagementCluster:        "Hand the cluster over to itself",
	InstallEKSAComponents:        "Have Drover on the cluster manage it",
	InstallAddOns:                "Write the spec to Git, if GitOps is configured",
	DeleteBootstrap:              "Remove the management plane on this machine",
	UpdateSecrets:                "Renew the credentials that the cluster keeps",
	UpgradeNeeded:                "See whether anything is to be done",
	PauseEksAAndFluxReconcile:    "Hold back what would interfere",
	InstallCAPI:                  "Have that plane ready to manage the cluster",
	MoveManagementToBootstrap:    "Hand the cluster over to that plane",
	UpgradeWorkloadCluster:       "Bring the cluster to its new spec",
	MoveManagementToWorkload:     "Hand the cluster back to itself",
	UpdateClusterAndGitResources: "Write down the new spec",
	ResumeFluxReconcile:          "Let go on what was held back",
	DeleteWorkloadCluster:        "Delete the cluster with its machines and addresses",
	CleanupGitRepo:               "Remove the cluster from Git, if GitOps is configured",
}
