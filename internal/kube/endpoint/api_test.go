package endpoint

import (
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestOwnServer(t *testing.T) {
	address := netip.MustParseAddr("198.18.0.9")
	config := &rest.Config{Host: "https://198.18.0.9:6443"}
	if err := toOwnServer(config, address); err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || config.ServerName != "198.18.0.9" {
		t.Errorf("server %q with the certificate of %q", config.Host, config.ServerName)
	}
	if err := toOwnServer(&rest.Config{Host: "https://lb.example.com:6443"}, address); err == nil {
		t.Error("the kubeconfig of another endpoint is accepted")
	}
}

func TestPeers(t *testing.T) {
	node := func(name string, cordoned bool, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	for name, tt := range map[string]struct {
		nodes []corev1.Node
		want  Peers
	}{
		"no node has registered":   {nil, Peers{}},
		"only its own":             {[]corev1.Node{node("a", false, "True")}, Peers{}},
		"another":                  {[]corev1.Node{node("a", false, "True"), node("b", false, "True")}, Peers{Others: 1, Able: 1}},
		"others that are not able": {[]corev1.Node{node("b", true, "True"), node("c", false, "Unknown")}, Peers{Others: 2}},
		"it is drained":            {[]corev1.Node{node("a", true, "True"), node("b", false, "True")}, Peers{Others: 1, Able: 1, Draining: true}},
	} {
		if diff := cmp.Diff(tt.want, peersAmong(tt.nodes, "a")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLeaseSaysSinceWhen(t *testing.T) {
	first := written(nil, "a", time.Unix(100, 0))
	renewed := written(first, "a", time.Unix(101, 0))
	freed := written(renewed, "", time.Unix(102, 0))
	taken := written(freed, "b", time.Unix(103, 0))
	for name, tt := range map[string]struct {
		lease    *coordinationv1.Lease
		acquired int64
		moves    int32
	}{"first": {first, 100, 1}, "renewed": {renewed, 100, 1}, "freed": {freed, 100, 1}, "taken": {taken, 103, 2}} {
		if got := tt.lease.Spec; got.AcquireTime.Unix() != tt.acquired || *got.LeaseTransitions != tt.moves {
			t.Errorf("%s: acquired at %d with %d moves, want %d and %d", name, got.AcquireTime.Unix(), *got.LeaseTransitions, tt.acquired, tt.moves)
		}
	}
}

// TestLeaseOfAnAPIServer checks what the state machine relies on: nobody overwrites a Lease that
// they have not seen.
func TestLeaseOfAnAPIServer(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "admin.conf")
	if err := clientcmd.WriteToFile(*kubetest.AsKubeconfig(kubetest.Start(t).Config), kubeconfig); err != nil {
		t.Fatal(err)
	}
	connect := func() *api { return &api{kubeconfig: kubeconfig, address: netip.MustParseAddr("127.0.0.1")} }
	ctx, a, b := t.Context(), connect(), connect()
	for _, one := range []*api{a, b} {
		if l, err := one.lease(ctx); err != nil || l != (Lease{}) {
			t.Fatalf("a missing Lease is read as %+v: %v", l, err)
		}
	}
	taken, err := a.write(ctx, "a")
	if err != nil || taken.Holder != "a" || taken.Version == "" || taken.Duration != Duration.Truncate(time.Second) {
		t.Fatalf("the Lease was written as %+v: %v", taken, err)
	}
	if _, err := b.write(ctx, "b"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating a Lease that exists: %v", err)
	}
	seen, err := b.lease(ctx)
	if err != nil || seen != taken {
		t.Errorf("the Lease is read as %+v, want %+v: %v", seen, taken, err)
	}
	if _, err := a.write(ctx, "a"); err != nil {
		t.Errorf("renewing: %v", err)
	}
	if _, err := b.write(ctx, "b"); !apierrors.IsConflict(err) {
		t.Errorf("taking a Lease that was renewed: %v", err)
	}
	if freed, err := a.write(ctx, ""); err != nil || freed.Holder != "" {
		t.Errorf("the Lease was freed as %+v: %v", freed, err)
	}
	if _, err := b.lease(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := b.write(ctx, "b"); err != nil || got.Holder != "b" {
		t.Errorf("a free Lease was taken as %+v: %v", got, err)
	}
	if p, err := b.peers(ctx, "b"); err != nil || p != (Peers{}) {
		t.Errorf("peers %+v: %v", p, err)
	}
}
