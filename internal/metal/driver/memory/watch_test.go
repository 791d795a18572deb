package memory

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
)

// TestWatchThatMissedADeletionIsRejected covers a client whose watch was interrupted while an
// object was deleted, as when the endpoint of a cluster moves.
func TestWatchThatMissedADeletionIsRejected(t *testing.T) {
	l := newLab(t)
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	cp := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	worker := l.machine("worker", workerUserdata(ca.hash(t)))
	l.start(cp)
	l.start(worker)
	nodes := kubernetes.NewForConfigOrDie(config(cp.Addresses[0].IP.String(), ca)).CoreV1().Nodes()
	list, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := list.ResourceVersion

	w := watchFrom(t, nodes, before)
	mustDo(t, l.d.Remove(t.Context(), worker.ID))
	deleted := next(t, w)
	if node, ok := deleted.Object.(*corev1.Node); !ok || deleted.Type != watch.Deleted || node.Name != "worker" {
		t.Errorf("existing watch: got event %s with %v", deleted.Type, deleted.Object)
	}
	w.Stop()

	if _, err := nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before the deletion: %v", err)
	}
	list, err = nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d nodes, %v", len(list.Items), err)
	}
	watchFrom(t, nodes, list.ResourceVersion).Stop()
	if _, err := nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1000000"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from a version that this process never had: %v", err)
	}
}

func watchFrom(t *testing.T, nodes typedv1.NodeInterface, version string) watch.Interface {
	t.Helper()
	w, err := nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next returns the next event about an object.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case e := <-w.ResultChan():
			if e.Type != watch.Bookmark {
				return e
			}
		case <-timeout:
			t.Fatal("no event")
		}
	}
}

// TestInitialWatchListIsComplete covers a client that has lost its connection: it treats omitted
// objects as deleted.
func TestInitialWatchListIsComplete(t *testing.T) {
	l := newLab(t)
	ca, etcd := newTestCA(t, "kubernetes"), newTestCA(t, "etcd")
	cp := l.machine("cp-1", controlPlaneUserdata(ca, etcd, initConfig))
	l.start(cp)
	nodes := kubernetes.NewForConfigOrDie(config(cp.Addresses[0].IP.String(), ca)).CoreV1().Nodes()
	list, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := nodes.Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: list.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	select {
	case e := <-w.ResultChan():
		if node, ok := e.Object.(*corev1.Node); !ok || e.Type != watch.Added || node.Name != "cp-1" {
			t.Errorf("it begins with %s of %v", e.Type, e.Object)
		}
	case <-time.After(10 * time.Second):
		t.Error("no event")
	}
}
