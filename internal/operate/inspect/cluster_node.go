package inspect

import (
	"cmp"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// Kinds of nodes. The kinds of Drover's and Cluster API's Cluster differ here although both are
// called Cluster.
const (
	kindCluster      = "Cluster"
	kindCAPI         = "Cluster API Cluster"
	kindInfra        = "PacketCluster"
	kindControlPlane = "KubeadmControlPlane"
	kindEtcd         = "EtcdadmCluster"
	kindWorkers      = "MachineDeployment"
	kindMachine      = "Machine"
	kindDevice       = "PacketMachine"
	kindBootstrap    = "KubeadmConfig"
	kindRelease      = "HelmReleaseProxy"
	kindFlux         = "FluxConfig"
	kindGitChange    = "GitChange"
)

// Node is an object of a cluster with the objects below it.
type Node struct {
	Kind       string             `json:"kind"`
	Namespace  string             `json:"namespace"`
	Name       string             `json:"name"`
	Detail     string             `json:"detail,omitempty"`
	Created    metav1.Time        `json:"created"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Deleting   bool               `json:"deleting,omitempty"`
	Paused     bool               `json:"paused,omitempty"`
	// Failure is an error that the user must correct.
	Failure string `json:"failure,omitempty"`
	// Behind means that the controller has not observed the latest spec.
	Behind bool `json:"behind,omitempty"`
	// Answers are the conditions of the parent that this node decides.
	Answers  []string `json:"-"`
	Children []*Node  `json:"children,omitempty"`
}

// order lists the conditions of each kind in the order in which they become true, so that the first
// unmet one is what the others wait for. Conditions that are not listed are not about readiness.
var order = map[string][]string{
	kindCluster: {
		anywherev1.CapacityReserved, anywherev1.EtcdReady, anywherev1.ControlPlaneInitialized, anywherev1.DefaultCNIConfigured, anywherev1.ControlPlaneReady, anywherev1.WorkersReady,
		anywherev1.SecretsEncrypted, anywherev1.KubernetesUpgraded, anywherev1.Ready,
	},
	kindCAPI: {
		clusterv1.ClusterTopologyReconciledCondition, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition,
		clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterControlPlaneMachinesReadyCondition,
		clusterv1.ClusterControlPlaneMachinesUpToDateCondition, clusterv1.ClusterWorkersAvailableCondition,
		clusterv1.ClusterWorkerMachinesReadyCondition, clusterv1.ClusterWorkerMachinesUpToDateCondition,
		clusterv1.ClusterRemoteConnectionProbeCondition, clusterv1.ClusterAvailableCondition,
	},
	kindInfra: {infrav1.NetworkInfrastructureReady, infrav1.EndpointServed, clusterv1.ReadyCondition},
	kindControlPlane: {
		"CertificatesAvailable", "Initialized", "EtcdClusterHealthy", "ControlPlaneComponentsHealthy", clusterv1.MachinesReadyCondition,
		clusterv1.MachinesUpToDateCondition, clusterv1.AvailableCondition,
	},
	kindEtcd: {
		etcdv1.EtcdEndpointsAvailable, etcdv1.EtcdCertificatesAvailable, etcdv1.Initialized, etcdv1.EtcdClusterHealthy,
		etcdv1.EtcdClusterResizeCompleted, etcdv1.EtcdMachinesSpecUpToDate, clusterv1.ReadyCondition,
	},
	kindWorkers: {clusterv1.AvailableCondition, clusterv1.MachinesReadyCondition, clusterv1.MachinesUpToDateCondition},
	kindMachine: {
		clusterv1.BootstrapConfigReadyCondition, clusterv1.InfrastructureReadyCondition, clusterv1.MachineNodeHealthyCondition,
		clusterv1.MachineNodeReadyCondition, "APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy",
		"EtcdMemberHealthy", clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineUpToDateCondition, clusterv1.ReadyCondition,
		clusterv1.AvailableCondition,
	},
	kindDevice:    {infrav1.InstanceReady, infrav1.BootstrapExecSucceeded, infrav1.BGPSessionReady, clusterv1.ReadyCondition},
	kindBootstrap: {"CertificatesAvailable", "DataSecretAvailable", clusterv1.ReadyCondition},
	kindFlux:      {anywherev1.RepositoryConnected, anywherev1.RepositoryFetched, anywherev1.ClustersApplied},
	kindGitChange: {droverv1.GitCommitted, droverv1.GitApplied, droverv1.GitChangeReady},
	kindRelease:   {addonsv1.ClusterAvailable, addonsv1.ReleaseExclusive, addonsv1.ReleaseReady, addonsv1.ReleaseInSync, clusterv1.ReadyCondition},
}

// waits are the reasons of conditions that wait for another condition of the same object.
var waits = []string{anywherev1.ControlPlaneNotReadyReason, anywherev1.ControlPlaneNotInitializedReason}

// unmet returns the first condition that is not met, or nil.
func (n *Node) unmet() *metav1.Condition {
	var waiting *metav1.Condition
	for _, kind := range order[n.Kind] {
		c := apimeta.FindStatusCondition(n.Conditions, kind)
		switch {
		case c == nil || c.Status == metav1.ConditionTrue:
		case slices.Contains(waits, c.Reason):
			waiting = cmp.Or(waiting, c)
		default:
			return c
		}
	}
	return waiting
}

// Well reports whether the object is ready.
func (n *Node) Well() bool {
	return !n.Deleting && !n.Paused && !n.Behind && n.Failure == "" && len(n.Conditions) > 0 && n.unmet() == nil
}

// since returns when the node entered its current state.
func (n *Node) since() time.Time {
	if c := n.unmet(); c != nil {
		return c.LastTransitionTime.Time
	}
	return n.Created.Time
}

// Walk calls visit for the node and all nodes below it, with their depth.
func (n *Node) Walk(visit func(n *Node, depth int)) { n.walk(visit, 0) }

func (n *Node) walk(visit func(n *Node, depth int), depth int) {
	visit(n, depth)
	for _, c := range n.Children {
		c.walk(visit, depth+1)
	}
}

// Counts reports whether a condition must be true for the object to be ready.
func (n *Node) Counts(condition string) bool { return slices.Contains(order[n.Kind], condition) }
