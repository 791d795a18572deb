package manager_test

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// lifePatience is the timeout of changes that replace one machine after the other.
const lifePatience = 4 * time.Minute

// fleetCluster is a cluster of the shipped template on simulated machines, as its creator sees it.
type fleetCluster struct {
	t        *testing.T
	c        client.Client
	ns, name string
	sim      simulated
	// addresses are all addresses that its machines ever had.
	addresses map[string]bool
}

func newFleetCluster(t *testing.T, controlPlanes, workers int, version string) *fleetCluster {
	t.Helper()
	if testing.Short() {
		t.Skip("a cluster's life takes minutes")
	}
	server, _ := ready(t)
	return newFleetClusterOn(t, server, controlPlanes, workers, version)
}

func newFleetClusterOn(t *testing.T, server *kubetest.Server, controlPlanes, workers int, version string) *fleetCluster {
	t.Helper()
	f := &fleetCluster{t: t, c: newClient(t, server.Config), ns: server.Namespace(t), name: "fleet", sim: newSimulated(t), addresses: map[string]bool{}}
	create(t, f.c, f.ns, fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: packet}, stringData: {PACKET_API_KEY: %q, METAL_API_URL: %q}}`, f.sim.Token, f.sim.URL))
	for _, obj := range render(t, "../../templates/cluster-template-local.yaml", map[string]string{
		"CLUSTER_NAME": f.name, "PROJECT_ID": f.sim.Project, "KUBERNETES_VERSION": version,
		"CONTROL_PLANE_MACHINE_COUNT": strconv.Itoa(controlPlanes), "WORKER_MACHINE_COUNT": strconv.Itoa(workers),
	}) {
		obj.SetNamespace(f.ns)
		if spec, ok := obj.Object["spec"].(map[string]any); ok && obj.GetKind() == "PacketCluster" {
			spec["credentialsRef"] = map[string]any{"name": "packet"}
		}
		eventually(t, func() error { return client.IgnoreAlreadyExists(f.c.Create(t.Context(), &obj)) })
	}
	return f
}

func (f *fleetCluster) get(name string, obj client.Object) error {
	return f.c.Get(f.t.Context(), client.ObjectKey{Namespace: f.ns, Name: name}, obj)
}

// change updates an object and retries conflicts.
func change[T client.Object](f *fleetCluster, name string, obj T, edit func(T)) {
	f.t.Helper()
	eventually(f.t, func() error {
		if err := f.get(name, obj); err != nil {
			return err
		}
		edit(obj)
		return f.c.Update(f.t.Context(), obj)
	})
}

func (f *fleetCluster) setControlPlanes(n int32) {
	f.t.Helper()
	change(f, f.name+"-control-plane", &controlplanev1.KubeadmControlPlane{}, func(o *controlplanev1.KubeadmControlPlane) { o.Spec.Replicas = ptr.To(n) })
}

func (f *fleetCluster) setWorkers(n int32) {
	f.t.Helper()
	change(f, f.name+"-worker-a", &clusterv1.MachineDeployment{}, func(o *clusterv1.MachineDeployment) { o.Spec.Replicas = ptr.To(n) })
}

// upgrade sets all versions at once; Cluster API handles the order.
func (f *fleetCluster) upgrade(version string) {
	f.t.Helper()
	change(f, f.name+"-control-plane", &controlplanev1.KubeadmControlPlane{}, func(o *controlplanev1.KubeadmControlPlane) { o.Spec.Version = version })
	change(f, f.name+"-worker-a", &clusterv1.MachineDeployment{}, func(o *clusterv1.MachineDeployment) { o.Spec.Template.Spec.Version = version })
}

// awaitMachines waits until the cluster has exactly these machines of this version, and everything
// is ready.
func (f *fleetCluster) awaitMachines(controlPlanes, workers int, version string) {
	f.t.Helper()
	took := kubetest.Await(f.t, lifePatience, func() error { return f.is(controlPlanes, workers, version) })
	f.t.Logf("%d control planes and %d workers of %s after %s", controlPlanes, workers, version, took.Round(100*time.Millisecond))
}

func (f *fleetCluster) is(controlPlanes, workers int, version string) error {
	for _, part := range []struct {
		name  string
		obj   conditioned
		wants []string
	}{
		{f.name, &clusterv1.Cluster{}, []string{
			clusterv1.ClusterAvailableCondition, clusterv1.ClusterRemoteConnectionProbeCondition,
			clusterv1.ClusterControlPlaneMachinesReadyCondition, clusterv1.ClusterWorkerMachinesReadyCondition,
		}},
		{f.name, &infrav1.PacketCluster{}, []string{clusterv1.ReadyCondition, infrav1.EndpointServed}},
		{f.name + "-control-plane", &controlplanev1.KubeadmControlPlane{}, []string{
			controlplanev1.KubeadmControlPlaneAvailableCondition, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition,
			controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, controlplanev1.KubeadmControlPlaneMachinesReadyCondition,
			controlplanev1.KubeadmControlPlaneMachinesUpToDateCondition,
		}},
		{f.name + "-worker-a", &clusterv1.MachineDeployment{}, []string{
			clusterv1.MachineDeploymentAvailableCondition, clusterv1.MachineDeploymentMachinesReadyCondition, clusterv1.MachineDeploymentMachinesUpToDateCondition,
		}},
	} {
		if err := f.get(part.name, part.obj); err != nil {
			return err
		}
		if err := wellIn(part.obj, part.wants...); err != nil {
			return err
		}
	}
	return f.hasMachines(controlPlanes, workers, version)
}

// conditioned is an object with conditions.
type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
}

func wellIn(obj conditioned, wants ...string) error {
	for _, want := range wants {
		c := meta.FindStatusCondition(obj.GetConditions(), want)
		if c == nil {
			return fmt.Errorf("%T %q lacks condition %s", obj, obj.GetName(), want)
		}
		if c.Status != metav1.ConditionTrue {
			return fmt.Errorf("%T %q: %s is %s: %s", obj, obj.GetName(), want, c.Reason, c.Message)
		}
	}
	return nil
}

// hasMachines also records the addresses for the final check.
func (f *fleetCluster) hasMachines(controlPlanes, workers int, version string) error {
	machines := &clusterv1.MachineList{}
	if err := f.c.List(f.t.Context(), machines, client.InNamespace(f.ns)); err != nil {
		return err
	}
	masters := 0
	for i := range machines.Items {
		m := &machines.Items[i]
		for _, a := range m.Status.Addresses {
			f.addresses[a.Address] = true
		}
		wants := []string{clusterv1.MachineAvailableCondition, clusterv1.MachineReadyCondition, clusterv1.MachineNodeHealthyCondition, clusterv1.MachineUpToDateCondition}
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		if controlPlane {
			masters++
			wants = append(wants,
				controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition, controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
				controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition, controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
				controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition)
		}
		if err := wellIn(m, wants...); err != nil {
			return err
		}
		if controlPlane && m.Status.CertificatesExpiryDate.IsZero() {
			return fmt.Errorf("the expiry of the certificate of machine %q is unknown", m.Name)
		}
		if m.Status.NodeInfo == nil || m.Status.NodeInfo.KubeletVersion != version {
			return fmt.Errorf("machine %q runs %+v, want %s", m.Name, m.Status.NodeInfo, version)
		}
	}
	if masters != controlPlanes || len(machines.Items)-masters != workers {
		return fmt.Errorf("%d control plane machines and %d workers, want %d and %d", masters, len(machines.Items)-masters, controlPlanes, workers)
	}
	if devices, _ := f.sim.Left(f.t); devices != controlPlanes+workers {
		return fmt.Errorf("%d devices for %d machines", devices, controlPlanes+workers)
	}
	return nil
}

// deleteCompletely deletes the cluster and waits until nothing of it is left.
func (f *fleetCluster) deleteCompletely() {
	f.t.Helper()
	cluster := &clusterv1.Cluster{}
	if err := f.get(f.name, cluster); err != nil {
		f.t.Fatal(err)
	}
	f.addresses[cluster.Spec.ControlPlaneEndpoint.Host] = true
	eventually(f.t, func() error { return client.IgnoreNotFound(f.c.Delete(f.t.Context(), cluster)) })
	took := kubetest.Await(f.t, lifePatience, func() error {
		if f.get(f.name, cluster) == nil {
			return fmt.Errorf("the cluster still exists: %+v", cluster.Status.Conditions)
		}
		return nil
	})
	f.t.Logf("gone after %s", took.Round(100*time.Millisecond))
	if devices, addresses := f.sim.Left(f.t); devices != 0 || addresses != 0 {
		f.t.Errorf("got %d devices and %d addresses, want none", devices, addresses)
	}
	if answering := f.servingAddresses(); len(answering) != 0 {
		f.t.Errorf("%s still answer", strings.Join(answering, ", "))
	}
}

// servingAddresses returns the addresses of the cluster's machines at which an API server listens.
// Only simulated machines have loopback addresses.
func (f *fleetCluster) servingAddresses() []string {
	var out []string
	for address := range f.addresses {
		if ip := net.ParseIP(address); ip == nil || !ip.IsLoopback() {
			continue
		}
		if conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "6443"), time.Second); err == nil {
			_ = conn.Close()
			out = append(out, address)
		}
	}
	slices.Sort(out)
	return out
}

func TestTemplateClusterLifecycleOnSimulatedMachines(t *testing.T) {
	const before, after = "v1.35.4", "v1.36.3"
	f := newFleetCluster(t, 1, 2, before)
	f.awaitMachines(1, 2, before)
	if len(f.servingAddresses()) == 0 {
		t.Error("no API server of the cluster answers, so its end would prove nothing")
	}
	f.setWorkers(4)
	f.awaitMachines(1, 4, before)
	f.setWorkers(1)
	f.awaitMachines(1, 1, before)
	f.setControlPlanes(3)
	f.awaitMachines(3, 1, before)
	f.upgrade(after)
	f.awaitMachines(3, 1, after)
	f.setControlPlanes(1)
	f.awaitMachines(1, 1, after)
	f.deleteCompletely()
}

func TestThreeControlPlaneMachinesStartTogether(t *testing.T) {
	const version = "v1.36.3"
	f := newFleetCluster(t, 3, 0, version)
	f.awaitMachines(3, 0, version)
	f.deleteCompletely()
}
