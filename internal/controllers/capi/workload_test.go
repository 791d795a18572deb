package capi

import (
	"errors"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/controllers/clustercache"

	"github.com/drover-dev/drover/internal/test/kubetest"
)

// TestConnectionsServeDrainAndControlPlane uses the API server as a workload cluster of itself.
func TestConnectionsServeDrainAndControlPlane(t *testing.T) {
	f := setup(t)
	f.createNode(t)
	f.createPod(t, f.namespace, "app", nil)
	f.createPod(t, metav1.NamespaceSystem, "etcd-n1", map[string]string{"tier": "control-plane", "component": "etcd"})
	key := f.connect(t)

	t.Run("a drain sees every Pod of a Node", func(t *testing.T) {
		c, err := f.wiring.workloads.GetClient(t.Context(), key)
		must(t, err)
		pods := &corev1.PodList{}
		must(t, c.List(t.Context(), pods, client.MatchingFields{"spec.nodeName": "n1"}))
		if len(pods.Items) != 2 || pods.Items[0].Spec.NodeName != "n1" {
			t.Errorf("got %d pods", len(pods.Items))
		}
	})
	t.Run("a cluster that did not answer is tried again soon", func(t *testing.T) {
		if _, ok := f.wiring.controlPlanes.(tunnels).ClusterCache.(retryInterval); !ok {
			t.Error("upstream has no setting for the interval any more: new clusters take half a minute longer")
		}
	})
	t.Run("a reader sees every Pod", func(t *testing.T) {
		r, err := f.wiring.workloads.GetReader(t.Context(), key)
		must(t, err)
		must(t, r.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "app"}, &corev1.Pod{}))
	})
	t.Run("a control plane gets its static Pods from a cache that holds nothing else", func(t *testing.T) {
		c, err := f.wiring.controlPlanes.GetClient(t.Context(), key)
		must(t, err)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "etcd-n1"}}
		await(t, c, pod)
		if pod.Spec.NodeName != "" {
			t.Error("the Pod did not come from the cache, which keeps no specs")
		}
		all := &corev1.PodList{}
		must(t, c.List(t.Context(), all, client.InNamespace(metav1.NamespaceSystem)))
		if len(all.Items) != 1 {
			t.Errorf("the cache holds %d pods", len(all.Items))
		}
	})
	t.Run("Nodes are whole and found by provider ID", func(t *testing.T) {
		c, err := f.wiring.workloads.GetClient(t.Context(), key)
		must(t, err)
		nodes := &corev1.NodeList{}
		must(t, c.List(t.Context(), nodes, client.MatchingFields{"spec.providerID": "thing://1"}))
		if len(nodes.Items) != 1 || nodes.Items[0].Status.NodeInfo.KubeletVersion != "v1.36.3" {
			t.Errorf("got %+v", nodes.Items)
		}
	})
}

func (f *fixture) createNode(t *testing.T) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{ProviderID: "thing://1"}}
	f.create(t, node)
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	must(t, f.live.Status().Update(t.Context(), node))
}

func (f *fixture) createPod(t *testing.T, namespace, name string, labels map[string]string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	must(t, client.IgnoreAlreadyExists(f.live.Create(t.Context(), account)))
	f.create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName:                     "n1",
			AutomountServiceAccountToken: ptr.To(false),
			Containers:                   []corev1.Container{{Name: "c", Image: "x"}},
		},
	})
}

// connect creates a Cluster whose kubeconfig refers to the same server, and waits for the
// connection.
func (f *fixture) connect(t *testing.T) client.ObjectKey {
	t.Helper()
	kubeconfig, err := os.ReadFile(kubetest.Kubeconfig(t, f.server.Config))
	must(t, err)
	key := f.register(t, kubeconfig)
	eventually(t, func() error {
		_, err := f.wiring.workloads.GetClient(t.Context(), key)
		return err
	})
	return key
}

func TestClosedConnectionIsReported(t *testing.T) {
	f := setup(t)
	_, err := f.wiring.workloads.GetClient(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "unknown"})
	if !errors.Is(err, clustercache.ErrClusterNotConnected) {
		t.Errorf("got %v", err)
	}
}
