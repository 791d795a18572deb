package clusters_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// TestUpgradesInPlaceKeepMachines upgrades a control plane of three and two workers, with a manager
// that is killed on the way. First it asks for a change that can't be made in place.
func TestUpgradesInPlaceKeepMachines(t *testing.T) {
	w := newWorld(t, managertest.Command)
	t.Chdir(t.TempDir())
	const inPlace = ", upgradeRolloutStrategy: {type: InPlace}}"
	w.drover("create", "cluster", "-f", w.spec(named("same"), "{count: 1}", "{count: 3"+inPlace, "{name: md-0, count: 1}", "{name: md-0, count: 2"+inPlace))
	w.ready("same", "3/3", "2/2")
	devices := w.devicesOf("same")

	w.change("same", func(c *anywherev1.Cluster) {
		c.Spec.KubernetesVersion = "1.36"
		c.Spec.WorkerNodeGroupConfigurations[0].KubeletConfiguration = &runtime.RawExtension{Raw: []byte(`{"maxPods": 50}`)}
	})
	w.until("the change is refused", func() error {
		s := w.cluster("same").Status
		if ptr.Deref(s.FailureReason, "") != anywherev1.InPlaceUpgradeImpossibleReason || !strings.Contains(deref(s.FailureMessage), "md-0") || !strings.Contains(deref(s.FailureMessage), "files") {
			return fmt.Errorf("%q: %s", ptr.Deref(s.FailureReason, ""), deref(s.FailureMessage))
		}
		return nil
	})
	w.hasVersion("same", "v1.35.4")
	p := &controlplanev1.KubeadmControlPlane{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: "same"}, p))
	if p.Spec.Version != "v1.35.4" {
		t.Errorf("the control plane was told %s", p.Spec.Version)
	}

	w.change("same", func(c *anywherev1.Cluster) { c.Spec.WorkerNodeGroupConfigurations[0].KubeletConfiguration = nil })
	w.until("a machine is being upgraded", func() error {
		if len(w.claimed("same")) == 0 {
			return errors.New("none is")
		}
		return nil
	})
	w.manager.Kill()
	w.start(managertest.Command)
	most := 0
	w.until("the machines are upgraded", func() error {
		most = max(most, len(w.claimed("same")))
		c := w.cluster("same")
		if c.Status.ReconciledGeneration != c.Generation {
			return fmt.Errorf("%s %v", deref(c.Status.FailureMessage), c.Status.Conditions)
		}
		return nil
	})
	if most > 1 {
		t.Errorf("%d machines were upgraded at a time", most)
	}
	w.ready("same", "3/3", "2/2")
	w.hasVersion("same", "v1.36.3")
	if diff := cmp.Diff(devices, w.devicesOf("same")); diff != "" {
		t.Errorf("devices changed (-before +after):\n%s", diff)
	}
	if claimed := w.claimed("same"); len(claimed) > 0 {
		t.Errorf("machines %q are still marked", claimed)
	}
	w.quiet()
	w.drover("delete", "cluster", "same", "-n", w.ns, "--yes")
	w.awaitDeletion("same")
}

// devicesOf returns the devices of a cluster's machines.
func (w *world) devicesOf(name string) map[string]string {
	w.Helper()
	all, out := &infrav1.PacketMachineList{}, map[string]string{}
	w.must(w.List(w.Context(), all, client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}))
	for i := range all.Items {
		out[all.Items[i].Name] = ptr.Deref(all.Items[i].Spec.ProviderID, "")
	}
	return out
}

// claimed returns the machines of a cluster that are being upgraded.
func (w *world) claimed(name string) []string {
	w.Helper()
	all := &clusterv1.MachineList{}
	w.must(w.List(w.Context(), all, client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name}))
	var out []string
	for i := range all.Items {
		if _, is := all.Items[i].Annotations["upgrade.drover.dev/version"]; is {
			out = append(out, all.Items[i].Name)
		}
	}
	return out
}
