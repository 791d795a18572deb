package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload/safeconfig"
)

// world is a namespace with one Cluster API cluster and no controllers.
type world struct {
	*testing.T
	plane   *Plane
	cluster *clusterv1.Cluster
	source  *KubeconfigSource
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := kubetest.Shared(t, install.Options{})
	// The webhooks have no server behind them here.
	admission := server.Clientset(t).AdmissionregistrationV1()
	all := metav1.ListOptions{}
	if err := errors.Join(
		admission.MutatingWebhookConfigurations().DeleteCollection(t.Context(), metav1.DeleteOptions{}, all),
		admission.ValidatingWebhookConfigurations().DeleteCollection(t.Context(), metav1.DeleteOptions{}, all),
	); err != nil {
		t.Fatal(err)
	}
	p, err := Connect(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, plane: p}
	w.makeCluster(server.Namespace(t))
	return w
}

func (w *world) makeCluster(namespace string) {
	w.Helper()
	w.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "herd"}}
	w.cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "PacketCluster", Name: "herd"}
	if err := w.plane.Client.Create(w.Context(), w.cluster); err != nil {
		w.Fatal(err)
	}
	var err error
	if w.source, err = w.plane.KubeconfigSource(w.Context(), namespace, "herd"); err != nil {
		w.Fatal(err)
	}
}

// report writes the status as the controllers of Cluster API would.
func (w *world) report(change func(*clusterv1.ClusterStatus)) {
	before := w.cluster.DeepCopy()
	change(&w.cluster.Status)
	if err := w.plane.Client.Status().Patch(w.Context(), w.cluster, client.MergeFrom(before)); err != nil {
		w.Error(err)
	}
}

// wayIn is the kubeconfig of the cluster.
var wayIn = kubetest.ExampleKubeconfig("herd")

func (w *world) keepKubeconfig() {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster.Namespace, Name: "herd-kubeconfig"}, Data: map[string][]byte{"value": []byte(wayIn)},
	}
	if err := w.plane.Client.Create(w.Context(), s); err != nil {
		w.Error(err)
	}
}

func waitingFor(kind, message string) func(*clusterv1.ClusterStatus) {
	return func(s *clusterv1.ClusterStatus) {
		s.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: "Waiting", Message: message, LastTransitionTime: metav1.Now()}}
	}
}

func initialized(s *clusterv1.ClusterStatus) {
	s.Conditions = nil
	s.Initialization.ControlPlaneInitialized = ptr.To(true)
}

func TestKubeconfigOfACAPIClusterRequiresAnAPIServer(t *testing.T) {
	w := newWorld(t)
	early := func(want string) {
		t.Helper()
		_, err := w.source.Read(t.Context())
		var e *NotInitializedError
		if !errors.As(err, &e) || e.Waiting != want {
			t.Errorf("error %v, want one that names %q", err, want)
		}
	}
	early(notObserved)
	w.report(waitingFor(clusterv1.ClusterInfrastructureReadyCondition, "no machines"))
	early("InfrastructureReady: no machines")
	w.keepKubeconfig()
	early("InfrastructureReady: no machines")
	w.report(initialized)
	if data, err := w.source.Read(t.Context()); err != nil || string(data) != wayIn {
		t.Errorf("kubeconfig %q (%v)", data, err)
	}
	if err := w.plane.Client.Delete(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	if _, err := w.source.Read(t.Context()); err == nil {
		t.Error("a deleted cluster has a kubeconfig")
	}
}

// The control plane and the Secret may become available in either order.
func TestAwaitKubeconfigOfACAPICluster(t *testing.T) {
	for name, steps := range map[string]func(*world) []func(){
		"the API server comes last": func(w *world) []func() { return []func(){w.keepKubeconfig, func() { w.report(initialized) }} },
		"the Secret comes last":     func(w *world) []func() { return []func(){func() { w.report(initialized) }, w.keepKubeconfig} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var told []string
			next := append([]func(){func() { w.report(waitingFor(clusterv1.ClusterInfrastructureReadyCondition, "no machines")) }}, steps(w)...)
			done := make(chan struct{})
			heard := make(chan struct{}, 10)
			go func() {
				defer close(done)
				<-heard
				for _, step := range next {
					step()
				}
			}()
			data, err := w.source.Await(t.Context(), func(waiting string) {
				told = append(told, waiting)
				heard <- struct{}{}
			})
			<-done
			if err != nil || string(data) != wayIn {
				t.Errorf("kubeconfig %q (%v)", data, err)
			}
			if told[0] != notObserved || len(told) > 4 {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestAwaitKubeconfigReportsWhatItWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.report(waitingFor(clusterv1.ClusterControlPlaneInitializedCondition, "kubeadm has not run"))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := w.source.Await(ctx, func(string) {})
	var early *NotInitializedError
	if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &early) || early.Waiting != "ControlPlaneInitialized: kubeadm has not run" {
		t.Errorf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}

// A kubeconfig in a Secret of a tenant must not make a command of someone else open files or start
// programs.
func TestCommandsRejectKubeconfigsThatReachIntoTheirCaller(t *testing.T) {
	w := newWorld(t)
	w.report(initialized)
	started := filepath.Join(t.TempDir(), "started")
	hostile := strings.Replace(wayIn, "client-certificate-data: Y3J0, client-key-data: a2V5",
		"exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: touch, args: ["+started+"]}", 1)
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.cluster.Namespace, Name: "herd-kubeconfig"}, Data: map[string][]byte{"value": []byte(hostile)},
	}
	if err := w.plane.Client.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var rejected *safeconfig.RejectedError
	if data, err := w.source.Read(t.Context()); !errors.As(err, &rejected) {
		t.Errorf("drover kubeconfig returns %q (%v)", data, err)
	}
	config, err := w.plane.GetRESTConfig(t.Context(), client.ObjectKeyFromObject(w.cluster))
	if !errors.As(err, &rejected) {
		t.Errorf("drover addon diff connects with %v (%v)", config, err)
	}
	if config != nil { // what a command would do next
		if c, err := client.New(config, client.Options{}); err == nil {
			_ = c.Get(t.Context(), client.ObjectKey{Name: "x"}, &corev1.Namespace{})
		}
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the program of the kubeconfig was started")
	}
}
