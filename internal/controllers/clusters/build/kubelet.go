package build

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// patchesDir contains patches that kubeadm applies. The name of a file determines its target and
// type.
const patchesDir = "/etc/kubernetes/patches"

// patch adds a patch for kubeadm.
func (m *machines) patch(name string, text []byte) {
	m.file(patchesDir+"/"+name, string(text)+"\n")
	patches := bootstrapv1.Patches{Directory: patchesDir}
	m.config.InitConfiguration.Patches, m.config.JoinConfiguration.Patches = patches, patches
}

// kubelet adds the kubelet configuration of a group as a patch to the defaults of kubeadm.
func (b *builder) kubelet(m *machines) error {
	settings := map[string]any{}
	if m.kubelet != nil && len(m.kubelet.Raw) > 0 {
		if err := yaml.Unmarshal(m.kubelet.Raw, &settings); err != nil {
			return fmt.Errorf("decoding kubeletConfiguration: %w", err)
		}
	}
	if r := b.cluster.Spec.ClusterNetwork.DNS.ResolvConf; r != nil && r.Path != "" && settings["resolvConf"] == nil {
		settings["resolvConf"] = r.Path
	}
	delete(settings, "apiVersion")
	delete(settings, "kind")
	if len(settings) == 0 {
		return nil
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("encoding kubeletConfiguration: %w", err)
	}
	m.patch("kubeletconfiguration0+merge.json", text)
	return nil
}
