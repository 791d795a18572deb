package capi

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestManagerDoesNotSendItsFilesToWorkloadClusters connects to a server whose kubeconfig names a
// file of the manager as its token.
func TestManagerDoesNotSendItsFilesToWorkloadClusters(t *testing.T) {
	f := setup(t)
	own := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(own, []byte("the manager's own token"), 0o600))
	var received atomic.Value
	kubeconfig := hostile(t, func(_ http.ResponseWriter, r *http.Request) { received.Store(r.Header.Get("Authorization")) })
	cluster := f.register(t, bytes.Replace(kubeconfig, []byte(`"token": "t"`), fmt.Appendf(nil, `"tokenFile": %q`, own), 1))

	eventually(t, func() error {
		if received.Load() != nil {
			return nil
		}
		return f.hasEvent(t, cluster, rejectedReason, "tokenFile")
	})
	if got := received.Load(); got != nil {
		t.Errorf("the workload cluster received %q", got)
	}
}

// register creates a Cluster with a kubeconfig.
func (f *fixture) register(t *testing.T, kubeconfig []byte) client.ObjectKey {
	t.Helper()
	f.create(t, &corev1.Secret{ObjectMeta: f.meta("c-kubeconfig"), Data: map[string][]byte{"value": kubeconfig}})
	cluster := &clusterv1.Cluster{ObjectMeta: f.meta("c"), Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}}
	f.create(t, cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	must(t, f.live.Status().Update(t.Context(), cluster))
	return client.ObjectKeyFromObject(cluster)
}

// hasEvent returns an error unless an event about a Cluster contains the text.
func (f *fixture) hasEvent(t *testing.T, cluster client.ObjectKey, reason, text string) error {
	t.Helper()
	events := &corev1.EventList{}
	must(t, f.live.List(t.Context(), events, client.InNamespace(cluster.Namespace)))
	for _, e := range events.Items {
		if e.InvolvedObject.Name == cluster.Name && e.Reason == reason && strings.Contains(e.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("no event %s", reason)
}
