package build

import (
	"encoding/json"
	"fmt"
	"time"
)

// components are the static Pods of a control plane.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

const (
	// startupPeriod is the period of startup probes. The default of kubeadm is ten seconds, after
	// an initial delay of ten.
	startupPeriod = time.Second
	// startupLimit is the default of kubeadm.
	startupLimit = 4 * time.Minute
)

// startupProbes makes kubelets detect early that the components of a control plane are ready, which
// everything else waits for.
func (b *builder) startupProbes(m *machines) error {
	for _, name := range components {
		if name == "etcd" && b.set.Etcd != nil {
			continue
		}
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": name,
			"startupProbe": map[string]any{
				"initialDelaySeconds": 0, "periodSeconds": int(startupPeriod.Seconds()), "failureThreshold": int(startupLimit / startupPeriod),
			},
		}}}})
		if err != nil {
			return fmt.Errorf("encoding the startup probe of %s: %w", name, err)
		}
		m.patch(name+"0+strategic.json", text)
	}
	return nil
}
