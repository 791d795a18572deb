package capi

import (
	ctrl "sigs.k8s.io/controller-runtime"

	bootstrapadmission "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/admission"
	controlplaneadmission "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/admission"
	coreadmission "sigs.k8s.io/cluster-api/core/webhooks/admission"
)

// admission is the interface of upstream's webhooks. Setup also registers conversion.
type admission interface {
	SetupWebhookWithManager(ctrl.Manager) error
}

// webhooks are all admission and conversion webhooks of Cluster API.
var webhooks = []webhook{
	{"Cluster", func(w *wiring) admission {
		return &coreadmission.Cluster{Client: w.client, ClusterCacheReader: w.workloads}
	}},
	{"ClusterClass", func(w *wiring) admission { return &coreadmission.ClusterClass{Client: w.client} }},
	{"Machine", func(*wiring) admission { return &coreadmission.Machine{} }},
	{"MachineSet", func(*wiring) admission { return &coreadmission.MachineSet{} }},
	{"MachineDeployment", func(*wiring) admission { return &coreadmission.MachineDeployment{} }},
	{"MachineDrainRule", func(*wiring) admission { return &coreadmission.MachineDrainRule{} }},
	{"MachinePool", func(*wiring) admission { return &coreadmission.MachinePool{} }},
	{"MachineHealthCheck", func(*wiring) admission { return &coreadmission.MachineHealthCheck{} }},
	{"ClusterResourceSet", func(*wiring) admission { return &coreadmission.ClusterResourceSet{} }},
	{"ClusterResourceSetBinding", func(*wiring) admission { return &coreadmission.ClusterResourceSetBinding{} }},
	{"ExtensionConfig", func(*wiring) admission { return &coreadmission.ExtensionConfig{} }},
	// Claims are read so rarely that caching all of them would not pay off.
	{"IPAddress", func(w *wiring) admission { return &coreadmission.IPAddress{Client: w.reader} }},
	{"IPAddressClaim", func(*wiring) admission { return &coreadmission.IPAddressClaim{} }},
	{"KubeadmConfig", func(*wiring) admission { return &bootstrapadmission.KubeadmConfig{} }},
	{"KubeadmConfigTemplate", func(*wiring) admission { return &bootstrapadmission.KubeadmConfigTemplate{} }},
	{"KubeadmControlPlane", func(*wiring) admission { return &controlplaneadmission.KubeadmControlPlane{} }},
	{"KubeadmControlPlaneScale", func(w *wiring) admission {
		return &controlplaneadmission.ScaleValidator{Client: w.client}
	}},
	{"KubeadmControlPlaneTemplate", func(*wiring) admission { return &controlplaneadmission.KubeadmControlPlaneTemplate{} }},
}

type webhook struct {
	name string
	make func(*wiring) admission
}

func (h webhook) setup(w *wiring) error { return h.make(w).SetupWebhookWithManager(w.mgr) }
