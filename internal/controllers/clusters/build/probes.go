package build

import (
	"encoding/json"
	"fmt"
	"time"
)

// components are what kubeadm runs as static Pods of a control plane.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

const (
	// startupPeriod is how often kubelets look whether a component is up. kubeadm has them look every ten seconds, and begin after ten.
	startupPeriod = time.Second
	// startupLimit is as kubeadm has it.
	startupLimit = 4 * time.Minute
)

// startupProbes has the components of a control plane be known as ready as soon as they are. All that waits for the cluster waits for that.
func (b *builder) startupProbes(m *machines) error {
	for _, name := range components {
		text, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{
			"name": name,
			"startupProbe": map[string]any{
				"initialDelaySeconds": 0, "periodSeconds": int(startupPeriod.Seconds()), "failureThreshold": int(startupLimit / startupPeriod),
			},
		}}}})
		if err != nil {
			return fmt.Errorf("writing the probe of %s: %w", name, err)
		}
		m.patch(name+"0+strategic.json", text)
	}
	return nil
}
