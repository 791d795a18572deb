package packettest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	etcdbootstrapv1 "github.com/drover-dev/drover/api/bootstrap/v1beta1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// World is a namespace on a real API server, with a Packet API and a clock: everything that a
// reconcile of the provider can observe.
type World struct {
	client.Client
	API       *API
	Clock     *clocktesting.FakePassiveClock
	Events    *record.FakeRecorder
	Access    *access.Source
	Namespace string
	Project   string
}

// NewWorld returns a world for one test on the API server of the test package. Tests with separate
// worlds may run in parallel.
func NewWorld(t testing.TB) *World {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	c, err := client.New(server.Config, client.Options{Scheme: Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := &World{
		Client: c, API: New(t), Clock: clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second)),
		Events: record.NewFakeRecorder(1000), Namespace: server.Namespace(t), Project: newID(),
	}
	w.Access = &access.Source{Secrets: contents.New(c, c), Default: access.Credentials{Token: Token, URL: w.API.URL}, Clock: w.Clock}
	return w
}

// Scheme has the kinds that the provider uses.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, etcdbootstrapv1.AddToScheme, etcdv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// Pass advances the clock.
func (w *World) Pass(d time.Duration) { w.Clock.SetTime(w.Clock.Now().Add(d)) }

// Sibling is another namespace of the same world.
func (w *World) Sibling(t testing.TB) *World {
	t.Helper()
	other := *w
	other.Namespace = kubetest.Shared(t, install.Options{}).Namespace(t)
	return &other
}

// Cluster creates a Cluster and its PacketCluster, with the owner reference that Cluster API would
// set.
func (w *World) Cluster(t testing.TB, name string, change func(*infrav1.PacketCluster)) *infrav1.PacketCluster {
	t.Helper()
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: infrav1.GroupVersion.Group, Kind: "PacketCluster", Name: name,
		}},
	}
	w.create(t, cluster)
	packet := &infrav1.PacketCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: name, UID: cluster.UID,
			}},
		},
		Spec: infrav1.PacketClusterSpec{ProjectID: w.Project, Metro: "da"},
	}
	if change != nil {
		change(packet)
	}
	w.create(t, packet)
	return packet
}

// ReadyCluster creates a cluster with ready infrastructure.
func (w *World) ReadyCluster(t testing.TB, name string, change func(*infrav1.PacketCluster)) *infrav1.PacketCluster {
	t.Helper()
	packet := w.Cluster(t, name, func(c *infrav1.PacketCluster) {
		c.Spec.ControlPlaneEndpoint = infrav1.APIEndpoint{Host: "203.0.113.250", Port: infrav1.APIServerPort}
		if change != nil {
			change(c)
		}
	})
	cluster := &clusterv1.Cluster{}
	w.Read(t, name, cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	if err := w.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return packet
}

// MachineOptions are the differences to a plain worker.
type MachineOptions struct {
	Cluster      string
	ControlPlane bool
	// Userdata is the bootstrap data; by default a short script.
	Userdata string
	// NoUserdata creates no bootstrap data.
	NoUserdata bool
	Spec       func(*infrav1.PacketMachineSpec)
	Owner      func(*clusterv1.Machine)
}

// Machine creates a Machine named "m-NAME" and its PacketMachine named NAME. The names differ on
// purpose.
func (w *World) Machine(t testing.TB, name string, o MachineOptions) *infrav1.PacketMachine {
	t.Helper()
	labels := map[string]string{clusterv1.ClusterNameLabel: o.Cluster}
	if o.ControlPlane {
		labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	owner := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "m-" + name, Labels: labels},
		Spec: clusterv1.MachineSpec{
			ClusterName: o.Cluster, Version: "v1.36.3",
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketMachine", Name: name},
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: name,
			}},
		},
	}
	if !o.NoUserdata {
		owner.Spec.Bootstrap.DataSecretName = ptr.To(name)
		w.create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
			Data:       map[string][]byte{"value": []byte(orDefault(o.Userdata, "#!/bin/sh\n"))},
		})
	}
	if o.Owner != nil {
		o.Owner(owner)
	}
	w.create(t, owner)
	machine := &infrav1.PacketMachine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: owner.Name, UID: owner.UID,
			}},
		},
		Spec: infrav1.PacketMachineSpec{OS: "ubuntu_24_04", MachineType: "c3.small.x86"},
	}
	if o.Spec != nil {
		o.Spec(&machine.Spec)
	}
	w.create(t, machine)
	return machine
}

func (w *World) create(t testing.TB, obj client.Object) {
	t.Helper()
	if err := w.Create(t.Context(), obj); err != nil {
		t.Fatalf("creating %T %q: %v", obj, obj.GetName(), err)
	}
}

// Read reads an object of the world's namespace.
func (w *World) Read(t testing.TB, name string, obj client.Object) {
	t.Helper()
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
}

// Gone reports whether an object no longer exists.
func (w *World) Gone(t testing.TB, name string, obj client.Object) bool {
	t.Helper()
	err := w.Get(t.Context(), client.ObjectKey{Namespace: w.Namespace, Name: name}, obj)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err != nil
}

// Reconcile runs a reconciler on one object until it settles: steps that only write, such as adding
// a finalizer, end early.
func (w *World) Reconcile(t testing.TB, r reconcile.Reconciler, name string) ctrl.Result {
	t.Helper()
	var last ctrl.Result
	for range 3 {
		var err error
		last, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.Namespace, Name: name}})
		if err != nil {
			t.Fatalf("reconciling %q: %v", name, err)
		}
	}
	return last
}

// Condition returns one condition as "Status Reason: message", or "" if there is none.
func Condition(obj interface{ GetConditions() []metav1.Condition }, kind string) string {
	for _, c := range obj.GetConditions() {
		if c.Type == kind {
			return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
		}
	}
	return ""
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
