package web

import (
	"net/http"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

// MachineItem is a machine in the inventory.
type MachineItem struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Cluster   string `json:"cluster"`
	ClusterID string `json:"clusterID,omitempty"`
	Role      string `json:"role"`
	Version   string `json:"version,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Ready     string `json:"ready"`
	Message   string `json:"message,omitempty"`
	// Node is the node of the machine, and NodeReady the status of its condition.
	Node      string      `json:"node,omitempty"`
	NodeReady string      `json:"nodeReady,omitempty"`
	Address   string      `json:"address,omitempty"`
	Device    string      `json:"device,omitempty"`
	Plan      string      `json:"plan,omitempty"`
	Created   metav1.Time `json:"created"`
}

// getMachines answers from the caches.
func (v *View) getMachines(w http.ResponseWriter, _ *http.Request) {
	devices := map[string]*infrav1.PacketMachine{}
	for _, d := range list[*infrav1.PacketMachine](v.stores[kindDevices]) {
		devices[d.Namespace+"/"+d.Name] = d
	}
	out := []MachineItem{}
	for _, m := range list[*clusterv1.Machine](v.stores[kindMachines]) {
		item := machineOf(m, devices[m.Namespace+"/"+m.Spec.InfrastructureRef.Name])
		item.ClusterID = v.idOf(m)
		out = append(out, item)
	}
	writeJSON(w, http.StatusOK, out)
}

// machinesOf returns the machines of a cluster.
func machinesOf(o *inspect.Objects) []MachineItem {
	devices := map[string]*infrav1.PacketMachine{}
	for i := range o.Devices.Items {
		devices[o.Devices.Items[i].Name] = &o.Devices.Items[i]
	}
	out := []MachineItem{}
	for i := range o.Machines.Items {
		m := &o.Machines.Items[i]
		out = append(out, machineOf(m, devices[m.Spec.InfrastructureRef.Name]))
	}
	return out
}

// idOf returns the ID of the cluster that a machine belongs to.
func (v *View) idOf(m *clusterv1.Machine) string {
	if m.Namespace == anywherev1.SystemNamespace {
		if found := of[*anywherev1.Cluster](v.stores[kindClusters], "", m.Spec.ClusterName); len(found) > 0 {
			return Key{drover, found[0].Namespace, found[0].Name}.String()
		}
	}
	return Key{capi, m.Namespace, m.Spec.ClusterName}.String()
}

// machineOf returns a machine with its device, which may be nil.
func machineOf(m *clusterv1.Machine, d *infrav1.PacketMachine) MachineItem {
	item := MachineItem{
		Namespace: m.Namespace, Name: m.Name, Cluster: m.Spec.ClusterName, Role: "worker", Version: m.Spec.Version, Phase: m.Status.Phase,
		Ready: string(metav1.ConditionUnknown), Node: m.Status.NodeRef.Name, Created: m.CreationTimestamp,
	}
	if _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; is {
		item.Role = "control plane"
	}
	if c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1.ReadyCondition); c != nil {
		item.Ready = string(c.Status)
		if c.Status != metav1.ConditionTrue {
			item.Message = c.Message
		}
	}
	if c := apimeta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineNodeReadyCondition); c != nil && item.Node != "" {
		item.NodeReady = string(c.Status)
	}
	if d != nil {
		item.Plan = d.Spec.MachineType
		if d.Status.InstanceStatus != nil {
			item.Device = string(*d.Status.InstanceStatus)
		}
	}
	if i := slices.IndexFunc(m.Status.Addresses, func(a clusterv1.MachineAddress) bool { return a.Address != "" }); i >= 0 {
		item.Address = m.Status.Addresses[i].Address
	}
	return item
}
