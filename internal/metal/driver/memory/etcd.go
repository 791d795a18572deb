package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inmemoryv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime/client"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// members lists the pods of etcd members that have not been removed.
func members(ctx context.Context, cl inmemory.Client) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := cl.List(ctx, &list, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": "etcd", "tier": "control-plane"})
	if err != nil {
		return nil, fmt.Errorf("listing etcd members: %w", err)
	}
	var out []corev1.Pod
	for _, pod := range list.Items {
		if _, removed := pod.Annotations[inmemoryv1.EtcdMemberRemoved]; !removed {
			out = append(out, pod)
		}
	}
	return out, nil
}

// etcdPod returns the pod of a new member. The first member of a cluster is its leader.
func (c *clusters) etcdPod(ctx context.Context, cl inmemory.Client, nodeName string) (*corev1.Pod, error) {
	others, err := members(ctx, cl)
	if err != nil {
		return nil, err
	}
	pod := staticPod("etcd", nodeName)
	pod.Annotations[inmemoryv1.EtcdClusterIDAnnotationName] = randomID()
	pod.Annotations[inmemoryv1.EtcdMemberIDAnnotationName] = randomID()
	if len(others) > 0 {
		pod.Annotations[inmemoryv1.EtcdClusterIDAnnotationName] = others[0].Annotations[inmemoryv1.EtcdClusterIDAnnotationName]
	} else {
		pod.Annotations[inmemoryv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
	}
	return pod, nil
}

func randomID() string { return strconv.FormatUint(uint64(rand.Uint32())+1, 10) } //nolint:gosec // A name, no secret.

// elect ensures that the etcd cluster of a request has a leader, as etcd does when its leader is
// lost or removed.
func (c *clusters) elect(r *http.Request) {
	at, err := netip.ParseAddrPort(localAddress(r))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f, found := c.fronts[at]
	if !found {
		return
	}
	if err := c.passLeadership(r.Context(), f.cluster, ""); err != nil {
		c.log.Warn("a simulated etcd has no leader", "cluster", f.cluster.id, "error", err)
	}
}

// passLeadership elects another leader if the departing node leads or there is no leader.
func (c *clusters) passLeadership(ctx context.Context, k *cluster, leaving string) error {
	cl := c.client(k)
	all, err := members(ctx, cl)
	if err != nil {
		return err
	}
	if leader := leaderOf(all); leader != "" && leader != leaving {
		return nil
	}
	heir := ""
	for _, pod := range all {
		if pod.Spec.NodeName != leaving && (heir == "" || c.isOn(pod.Spec.NodeName, k)) {
			heir = pod.Spec.NodeName
		}
	}
	if heir == "" {
		return nil
	}
	return modify(ctx, cl, staticPod("etcd", heir), func(o *corev1.Pod) {
		o.Annotations[inmemoryv1.EtcdLeaderFromAnnotationName] = time.Now().Add(time.Second).Format(time.RFC3339)
	})
}

// leaderOf returns the node of the current leader.
func leaderOf(pods []corev1.Pod) string {
	var leader string
	var since time.Time
	for _, pod := range pods {
		at, err := time.Parse(time.RFC3339, pod.Annotations[inmemoryv1.EtcdLeaderFromAnnotationName])
		if err == nil && (leader == "" || at.After(since)) {
			leader, since = pod.Spec.NodeName, at
		}
	}
	return leader
}

func (c *clusters) isOn(nodeName string, k *cluster) bool {
	for _, n := range c.nodes {
		if n.cluster == k && n.boot.nodeName == nodeName {
			return n.on
		}
	}
	return false
}
