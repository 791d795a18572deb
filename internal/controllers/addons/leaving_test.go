package addons_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/addons/holdback"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
)

// leaving is a cluster behind a front, with a machine and an add-on that is uninstalled before the
// cluster is deleted.
type leaving struct {
	*world

	front   *workloadtest.Front
	cluster *clusterv1.Cluster
	// ended is when objects were deleted, by kind, as resource versions.
	ended chan gone
}

// gone is the deletion of an object.
type gone struct {
	kind    string
	version int
}

func newLeaving(t *testing.T, giveUpAfter time.Duration) *leaving {
	t.Helper()
	w := emptyWorld(t)
	w.start()
	l := &leaving{world: w, front: workloadtest.NewFront(t, workloads.All()[0].Config), cluster: clusterNamed(w.namespace, "x"), ended: make(chan gone, 10)}
	l.cluster.Labels = map[string]string{"all": "yes"}
	if err := clustertest.Register(t.Context(), w.Client, l.cluster, l.front.Config); err != nil {
		t.Fatal(err)
	}
	l.machine()
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{TLS: true})
	repository.Publish("greeter", "1.0.0", greeter(t, "1.0.0"))
	p := w.proxy("hello", repository.URL, w.trust(repository), func(s *spec) {
		s.Options.Uninstall = &addonsv1.HelmUninstallOptions{BeforeCluster: true, GiveUpAfter: &metav1.Duration{Duration: giveUpAfter}}
	})
	w.create(p)
	w.awaitReady(p, 1)
	w.until("the machine is held", func() bool {
		_, held := l.read().Annotations[holdback.Hook]
		return held
	})
	l.follow("release", &addonsv1.HelmReleaseProxyList{})
	l.follow("machine", &infrav1.PacketMachineList{})
	l.follow("infrastructure", &infrav1.PacketClusterList{})
	return l
}

// machine creates a machine with unmanaged infrastructure: it disappears when Cluster API deletes
// it.
func (l *leaving) machine() {
	l.Helper()
	l.create(&infrav1.PacketMachine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{clusterv1.PausedAnnotation: ""}},
		Spec:       infrav1.PacketMachineSpec{OS: "ubuntu_24_04", MachineType: "c3.small.x86"},
	})
	l.create(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1.MachineSpec{
		ClusterName: l.cluster.Name, Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("none")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "PacketMachine", Name: "m"},
	}})
}

// read returns the machine, or an empty one if it is deleted.
func (l *leaving) read() *clusterv1.Machine {
	m := &clusterv1.Machine{}
	_ = l.Get(l.Context(), client.ObjectKey{Namespace: l.namespace, Name: "m"}, m)
	return m
}

// follow records when the first object of a kind was deleted.
func (l *leaving) follow(kind string, list client.ObjectList) {
	l.Helper()
	c, err := client.NewWithWatch(l.server.Config, client.Options{Scheme: l.Scheme()})
	if err != nil {
		l.Fatal(err)
	}
	events, err := c.Watch(l.Context(), list, client.InNamespace(l.namespace))
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(events.Stop)
	go func() {
		for e := range events.ResultChan() {
			o, ok := e.Object.(client.Object)
			if !ok || e.Type != watch.Deleted {
				continue
			}
			version, _ := strconv.Atoi(o.GetResourceVersion()) // 0 fails the test
			l.ended <- gone{kind, version}
			return
		}
	}()
}

// remove deletes the Cluster and waits until Cluster API waits for the hook.
func (l *leaving) remove() {
	l.Helper()
	if err := l.Delete(l.Context(), l.cluster); err != nil {
		l.Fatal(err)
	}
	l.until("the machine waits", func() bool {
		deleting := conditions.Get(l.read(), clusterv1.MachineDeletingCondition)
		return deleting != nil && strings.Contains(deleting.Message, holdback.Hook)
	})
}

// awaitEnd waits until the Cluster is deleted, and returns when everything else was.
func (l *leaving) awaitEnd() map[string]int {
	l.Helper()
	l.until("the Cluster is gone", func() bool {
		return apierrors.IsNotFound(l.Get(l.Context(), client.ObjectKeyFromObject(l.cluster), l.cluster))
	})
	out := map[string]int{}
	for range 3 {
		select {
		case g := <-l.ended:
			out[g.kind] = g.version
		case <-time.After(kubetest.Patience):
			l.Fatalf("got only %v deleted, want all", out)
		}
	}
	return out
}

func (l *leaving) checkOrder() {
	l.Helper()
	ended := l.awaitEnd()
	if ended["release"] == 0 || ended["release"] > ended["machine"] || ended["machine"] > ended["infrastructure"] {
		l.Errorf("the release, the machine and the infrastructure went at %v, want them in this order", ended)
	}
}

func TestReleasesAreUninstalledBeforeClusterDeletion(t *testing.T) {
	l := newLeaving(t, 0)
	if got := l.text("hello")[0]; got != "hello, x from 1.0.0" {
		t.Fatalf("on the cluster is %q", got)
	}
	l.front.Hang() // so that uninstalling takes longer than the rest
	l.remove()
	l.front.Resume()
	l.checkOrder()
	if got := l.text("hello")[0]; got != "" {
		t.Errorf("on the cluster is still %q", got)
	}
	if got := l.records(workloads.All()[0], "hello"); len(got) != 0 {
		t.Errorf("got records %v, want none", got)
	}
}

func TestUnreachableClusterIsFinallyDeleted(t *testing.T) {
	const bound = 5 * time.Second
	l := newLeaving(t, bound)
	l.front.Hang()
	began := time.Now()
	l.remove()
	l.checkOrder()
	if took := time.Since(began); took < bound {
		t.Errorf("it was given up after %s, want at least %s", took, bound)
	}
	if got := l.text("hello")[0]; got != "hello, x from 1.0.0" {
		t.Errorf("on the cluster is %q, so it did answer", got)
	}
	events := &corev1.EventList{}
	if err := l.List(t.Context(), events, client.InNamespace(l.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "ReleaseAbandoned" && strings.Contains(e.Message, `"hello"`) && strings.Contains(e.Message, l.target) {
			return
		}
	}
	t.Error("got no event that names the orphaned objects, want one")
}
