package cluster

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

// TestKubeconfigOfTheClusterItself uses a spec that doesn't say that it is that of a management
// cluster, in a directory without files of its creation.
func TestKubeconfigOfTheClusterItself(t *testing.T) {
	w := newWorld(t)
	solo := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "solo"}}
	solo.Spec.KubernetesVersion = "1.36"
	solo.Spec.ManagementCluster.Name = "solo"
	w.must(w.client.Create(t.Context(), solo))
	for _, name := range []string{"solo", "other"} {
		w.spec(name, replacing("  management: false\n", ""))
	}
	for name, managed := range map[string]bool{"solo": false, "other": true} {
		for _, verb := range []string{"upgrade", "delete"} {
			got := w.drover(verb, "cluster", "-f", name+".yaml", "--dry-run")
			if strings.Contains(got.out+got.err, lifecycle.MoveManagementToBootstrap) == managed {
				t.Errorf("drover %s cluster -f %s.yaml treats it as a workload cluster: %v\n%s%s", verb, name, !managed, got.out, got.err)
			}
		}
	}
	if _, err := os.Stat("solo"); !os.IsNotExist(err) {
		t.Errorf("a dry run created files: %v", err)
	}
}
