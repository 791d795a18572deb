package machine

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/drover-dev/drover/internal/test/packettest"
)

// workload is a workload cluster that may be unreachable.
type workload struct {
	client ctrlclient.Client
}

func (w *workload) GetClient(context.Context, ctrlclient.ObjectKey) (ctrlclient.Client, error) {
	if w.client == nil {
		return nil, clustercache.ErrClusterNotConnected
	}
	return w.client, nil
}

func (w *workload) Watch(context.Context, ctrlclient.ObjectKey, clustercache.Watcher) error {
	return nil
}

func TestMissingProviderIDIsSetOnTheNode(t *testing.T) {
	w := newWorld(t, nil)
	remote := &workload{}
	w.Workloads = remote
	name := "node-" + w.Namespace
	w.Machine(t, name, packettest.MachineOptions{Cluster: "c"})
	m := w.up(t, name) // an unreachable cluster does not block

	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: uninitialized, Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}
	if err := w.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	remote.client = w.World.Client
	w.run(t, name)
	if err := w.Get(t.Context(), ctrlclient.ObjectKey{Name: name}, node); err != nil {
		t.Fatal(err)
	}
	if node.Spec.ProviderID != *m.Spec.ProviderID || node.Labels[corev1.LabelTopologyRegion] != "da" || pending(node) {
		t.Errorf("node: %+v %v", node.Spec, node.Labels)
	}
	if len(node.Status.Addresses) != len(m.Status.Addresses)+1 || lacksInternalIP(node) {
		t.Errorf("a kubelet that leaves addresses to a cloud controller has %v, its machine %v", node.Status.Addresses, m.Status.Addresses)
	}
	version := node.ResourceVersion
	w.run(t, name)
	if err := w.Get(t.Context(), ctrlclient.ObjectKey{Name: name}, node); err != nil || node.ResourceVersion != version {
		t.Errorf("the node was written again, or %v", err)
	}
}
