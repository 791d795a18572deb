// Package fleettest makes up fleets: the objects of hundreds of clusters as a management plane
// stores them, healthy or with the failures that people see. Start with Fleet.
package fleettest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// State is what is the matter with a cluster.
type State int

// States of clusters.
const (
	Ready State = iota
	// Creating waits for its first control plane machine, as it should.
	Creating
	// WithoutServer lacks a server for a worker.
	WithoutServer
	// Unbooted has a worker whose bootstrap failed.
	Unbooted
	Paused
	Deleting
)

// Fleet describes a fleet.
type Fleet struct {
	// Now is the time that ages are relative to.
	Now time.Time
	// StateOf chooses the state of the cluster with a number.
	StateOf func(int) State
}

// Healthy has one cluster that is being created among 25.
func Healthy(i int) State {
	if i%25 == 7 {
		return Creating
	}
	return Ready
}

// OnFire has many failures of all kinds.
func OnFire(i int) State {
	switch i % 12 {
	case 1:
		return WithoutServer
	case 4:
		return Unbooted
	case 6:
		return Creating
	case 9:
		if i%24 == 9 {
			return Paused
		}
		return Deleting
	}
	return Ready
}

// Name returns the name of the cluster with a number.
func Name(i int) string {
	sites := []string{"ams", "fra", "iad", "sjc", "nrt", "syd"}
	return fmt.Sprintf("%s-%s-%02d", sites[i%len(sites)], role(i), i/len(sites)+1)
}

// Namespace returns the namespace of the cluster with a number.
func Namespace(i int) string { return "team-" + role(i) }

func role(i int) string { return []string{"web", "batch", "edge", "ci", "ml"}[i%5] }

// Objects returns the objects of a fleet.
func (f Fleet) Objects(clusters int) []client.Object {
	var out []client.Object
	for i := range clusters {
		out = append(out, f.Cluster(i)...)
	}
	return append(append(out, f.git(clusters)...), f.addOns(clusters)...)
}

// Cluster returns the objects of the cluster with a number.
func (f Fleet) Cluster(i int) []client.Object {
	c := &cluster{fleet: f, number: i, name: Name(i), state: f.StateOf(i), version: "v1.36.3"}
	if i%7 == 3 {
		c.version = "v1.35.4"
	}
	out := []client.Object{c.described(), c.plain(), c.infra(), c.controlPlane(), c.workers()}
	for n := range 3 {
		out = append(out, c.machine(fmt.Sprintf("%s-%s", c.name, suffix(i, n)), true)...)
	}
	for n := range workers {
		out = append(out, c.machine(fmt.Sprintf("%s-md-0-%s", c.name, suffix(i, n)), false)...)
	}
	for _, chart := range []string{"cilium", "ingress", "monitoring"} {
		out = append(out, c.release(chart))
	}
	return out
}

// workers is how many workers a cluster wants.
const workers = 4

type cluster struct {
	fleet   Fleet
	number  int
	name    string
	version string
	state   State
}

func suffix(i, n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	x := (i+1)*7919 + (n+1)*104729
	out := make([]byte, 5)
	for k := range out {
		out[k] = letters[x%len(letters)]
		x = x/3 + 17*(k+n+1)
	}
	return string(out)
}

// at returns a time before now.
func (c *cluster) at(ago time.Duration) metav1.Time {
	return metav1.NewTime(c.fleet.Now.Add(-ago).Truncate(time.Second))
}

// age is how old the cluster is.
func (c *cluster) age() time.Duration {
	if c.state == Creating {
		return time.Minute
	}
	return time.Duration(c.number%90+1)*24*time.Hour + 3*time.Hour
}

func (c *cluster) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Generation: 1, CreationTimestamp: c.at(c.age()),
		Labels: map[string]string{clusterv1.ClusterNameLabel: c.name},
	}
}

func (c *cluster) met(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: c.at(c.age() - 50*time.Second)}
}

func (c *cluster) unmet(kind, reason, message string) metav1.Condition {
	since := 14 * time.Minute
	if c.state == Creating {
		since = 40 * time.Second
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: c.at(since)}
}

// changed returns when the spec was changed last: in one namespace half an hour ago. The first
// control plane machine was replaced then.
func (c *cluster) changed() metav1.Time {
	if Namespace(c.number) != changedNamespace || c.state == Creating {
		return metav1.Time{}
	}
	return c.fleet.changedAt()
}

const changedNamespace = "team-batch"

func (f Fleet) changedAt() metav1.Time {
	return metav1.NewTime(f.Now.Add(-30 * time.Minute).Truncate(time.Second))
}

// AddManagedFields adds to a list of Clusters when their specs were changed, which a client in
// memory doesn't return.
func (f Fleet) AddManagedFields(list client.ObjectList) {
	clusters, ok := list.(*anywherev1.ClusterList)
	if !ok {
		return
	}
	for i := range clusters.Items {
		if at := f.changedAt(); clusters.Items[i].Namespace == changedNamespace {
			clusters.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "drover", Time: &at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}
		}
	}
}

// lacksWorker reports whether a worker is missing.
func (c *cluster) lacksWorker() bool { return c.state == WithoutServer || c.state == Unbooted }

func (c *cluster) described() *anywherev1.Cluster {
	out := &anywherev1.Cluster{ObjectMeta: c.meta(Namespace(c.number), c.name)}
	out.Labels = map[string]string{"env": []string{"prod", "staging", "dev"}[c.number%3], "site": c.name[:3]}
	out.Annotations = map[string]string{"drover.dev/created-by": "system:serviceaccount:" + Namespace(c.number) + ":creator"}
	out.Spec.KubernetesVersion, out.Spec.Management = c.version[1:5], ptr.To(false)
	out.Spec.ManagementCluster.Name = "mgmt"
	out.Spec.ControlPlaneConfiguration.Count = 3
	out.Spec.WorkerNodeGroupConfigurations = []anywherev1.WorkerNodeGroupConfiguration{{Name: "md-0", Count: ptr.To(workers)}}
	if inGit(c.number) {
		out.Spec.GitOpsRef = &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "fleet"}
	}
	s := &out.Status
	s.ObservedGeneration, s.Version, s.ControlPlane, s.Workers = 1, c.version, "3/3", fmt.Sprintf("%d/%d", workers, workers)
	s.Conditions = []metav1.Condition{
		c.met(anywherev1.CapacityReserved), c.met(anywherev1.ControlPlaneInitialized), c.met(anywherev1.DefaultCNIConfigured),
		c.met(anywherev1.ControlPlaneReady), c.met(anywherev1.WorkersReady), c.met(anywherev1.Ready),
	}
	switch c.state {
	case Creating:
		s.Version, s.ControlPlane, s.Workers = "", "0/3", fmt.Sprintf("0/%d", workers)
		s.Conditions = []metav1.Condition{
			c.met(anywherev1.CapacityReserved),
			c.unmet(anywherev1.ControlPlaneInitialized, "ControlPlaneInitializing", "Creating control plane machine 1/3"),
			c.unmet(anywherev1.Ready, "ControlPlaneInitializing", "Creating control plane machine 1/3"),
		}
	case WithoutServer, Unbooted:
		s.Workers = fmt.Sprintf("%d/%d", workers-1, workers)
		message := fmt.Sprintf("%d of %d workers are ready", workers-1, workers)
		s.Conditions[4] = c.unmet(anywherev1.WorkersReady, "WorkersNotReady", message)
		s.Conditions[5] = c.unmet(anywherev1.Ready, "WorkersNotReady", message)
	case Paused:
		out.Annotations[anywherev1.PausedAnnotation] = "true"
	case Deleting:
		out.Finalizers, out.DeletionTimestamp = []string{anywherev1.ClusterFinalizer}, ptr.To(c.at(time.Minute))
	case Ready:
	}
	return out
}

func (c *cluster) plain() *clusterv1.Cluster {
	out := &clusterv1.Cluster{ObjectMeta: c.meta(anywherev1.SystemNamespace, c.name)}
	out.Status.Phase = "Provisioned"
	out.Status.Conditions = []metav1.Condition{
		c.met(clusterv1.ClusterInfrastructureReadyCondition), c.met(clusterv1.ClusterControlPlaneAvailableCondition),
		c.met(clusterv1.ClusterWorkersAvailableCondition), c.met(clusterv1.ClusterAvailableCondition),
	}
	switch {
	case c.state == Creating:
		out.Status.Phase = "Provisioning"
		out.Status.Conditions[1] = c.unmet(clusterv1.ClusterControlPlaneAvailableCondition, "NotAvailable", "Waiting for the first control plane machine")
	case c.lacksWorker():
		out.Status.Conditions[2] = c.unmet(clusterv1.ClusterWorkersAvailableCondition, "NotAvailable", "1 worker is not available")
	}
	return out
}

func (c *cluster) infra() *infrav1.PacketCluster {
	out := &infrav1.PacketCluster{ObjectMeta: c.meta(anywherev1.SystemNamespace, c.name)}
	out.Spec.Metro = c.name[:2]
	out.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: fmt.Sprintf("203.0.113.%d", c.number%250+1), Port: 6443}
	out.Status.Conditions = []metav1.Condition{c.met(infrav1.NetworkInfrastructureReady), c.met(clusterv1.ReadyCondition)}
	return out
}

func (c *cluster) controlPlane() *controlplanev1.KubeadmControlPlane {
	out := &controlplanev1.KubeadmControlPlane{ObjectMeta: c.meta(anywherev1.SystemNamespace, c.name)}
	out.Spec.Version = c.version
	out.Status.Conditions = []metav1.Condition{c.met("CertificatesAvailable"), c.met("Initialized"), c.met(clusterv1.AvailableCondition)}
	if c.state == Creating {
		out.Status.Conditions[1] = c.unmet("Initialized", "NotInitialized", "Control plane not yet initialized")
	}
	return out
}

func (c *cluster) workers() *clusterv1.MachineDeployment {
	out := &clusterv1.MachineDeployment{ObjectMeta: c.meta(anywherev1.SystemNamespace, c.name+"-md-0")}
	out.Spec.Replicas, out.Spec.Template.Spec.Version = ptr.To[int32](workers), c.version
	out.Status.Conditions = []metav1.Condition{c.met(clusterv1.AvailableCondition)}
	if c.lacksWorker() || c.state == Creating {
		out.Status.Conditions[0] = c.unmet(clusterv1.AvailableCondition, "NotAvailable", fmt.Sprintf("%d available replicas, at least %d required", workers-1, workers))
	}
	return out
}

// machine returns a Machine and its device. The first worker of a failing cluster is the broken
// one.
func (c *cluster) machine(name string, controlPlane bool) []client.Object {
	m := &clusterv1.Machine{ObjectMeta: c.meta(anywherev1.SystemNamespace, name)}
	d := &infrav1.PacketMachine{ObjectMeta: c.meta(anywherev1.SystemNamespace, name)}
	m.Spec.ClusterName, m.Spec.Version, m.Spec.InfrastructureRef.Name = c.name, c.version, name
	m.Status.Phase, m.Status.NodeRef.Name = "Running", name
	m.Status.Addresses = clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", c.number/200, c.number%200, len(name))}}
	m.Status.Conditions = []metav1.Condition{c.met(clusterv1.InfrastructureReadyCondition), c.met(clusterv1.MachineNodeReadyCondition), c.met(clusterv1.ReadyCondition)}
	d.Spec.MachineType, d.Status.InstanceStatus = "c3.medium.x86", ptr.To(infrav1.InstanceActive)
	d.Status.Conditions = []metav1.Condition{c.met(infrav1.InstanceReady), c.met(clusterv1.ReadyCondition)}
	if controlPlane {
		m.Labels[clusterv1.MachineControlPlaneLabel] = ""
		d.Spec.MachineType = "c3.small.x86"
	} else {
		m.Labels[clusterv1.MachineDeploymentNameLabel] = c.name + "-md-0"
	}
	if at := c.changed(); controlPlane && !at.IsZero() && name == fmt.Sprintf("%s-%s", c.name, suffix(c.number, 0)) {
		m.CreationTimestamp = metav1.NewTime(at.Add(20 * time.Second))
		m.Status.Conditions[2].LastTransitionTime = metav1.NewTime(at.Add(140 * time.Second))
	}
	broken := !controlPlane && c.lacksWorker() && name == fmt.Sprintf("%s-md-0-%s", c.name, suffix(c.number, 0))
	switch {
	case broken && c.state == WithoutServer:
		message := "no server of plan c3.medium.x86 is free in metro " + c.name[:2]
		d.Status.Conditions[0] = c.unmet(infrav1.InstanceReady, infrav1.InsufficientCapacityReason, message)
		d.Status.InstanceStatus = ptr.To(infrav1.InstanceQueued)
	case broken:
		d.Status.Conditions = append(d.Status.Conditions, c.unmet(infrav1.BootstrapExecSucceeded, infrav1.BootstrapFailedReason, "kubeadm join failed: the registry of the machine's images does not answer"))
	case c.state == Creating:
		d.Status.Conditions[0] = c.unmet(infrav1.InstanceReady, "InstanceProvisionStarted", "Installing the operating system")
		d.Status.InstanceStatus = ptr.To(infrav1.InstanceProvisioning)
	default:
		return []client.Object{m, d}
	}
	m.Status.Phase, m.Status.NodeRef.Name = "Provisioning", ""
	m.Status.Conditions = []metav1.Condition{c.unmet(clusterv1.InfrastructureReadyCondition, "NotReady", "Waiting for the device"), c.unmet(clusterv1.ReadyCondition, "NotReady", "Waiting for the device")}
	return []client.Object{m, d}
}

// release returns an add-on on the cluster. Some have an older version, and some have failed.
func (c *cluster) release(chart string) *addonsv1.HelmReleaseProxy {
	out := &addonsv1.HelmReleaseProxy{ObjectMeta: c.meta(anywherev1.SystemNamespace, chart+"-"+c.name)}
	out.Labels[addonsv1.HelmChartProxyLabel] = chart
	out.Spec.ClusterRef.Name, out.Spec.ChartName, out.Spec.ReleaseName = c.name, chart, chart
	out.Spec.Version = map[string]string{"cilium": "1.18.2", "ingress": "4.12.0", "monitoring": "75.1.0"}[chart]
	if chart == "ingress" && c.number%6 == 2 {
		out.Spec.Version = "4.11.3"
	}
	out.Status.Status, out.Status.Revision, out.Status.ObservedGeneration = "deployed", 2, 1
	out.Status.Conditions = []metav1.Condition{c.met(addonsv1.ReleaseReady), c.met(clusterv1.ReadyCondition)}
	if chart == "monitoring" && c.state == Unbooted {
		message := "Deployment monitoring/server: 0 of 1 replicas are available"
		out.Status.Status, out.Status.Attempt = "failed", &addonsv1.FailedAttempt{Message: message, Failures: 3}
		out.Status.Conditions = []metav1.Condition{
			c.unmet(addonsv1.ReleaseReady, addonsv1.InstallOrUpgradeFailedReason, message), c.unmet(clusterv1.ReadyCondition, addonsv1.InstallOrUpgradeFailedReason, message),
		}
	}
	return out
}
