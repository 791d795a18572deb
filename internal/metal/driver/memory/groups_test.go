package memory

import (
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
)

func TestGroupIsReusedAfterItsClusterIsDeleted(t *testing.T) {
	l := newLab(t)
	etcd := newTestCA(t, "etcd")
	stays := l.machine("stays", controlPlaneUserdata(newTestCA(t, "kubernetes"), etcd, initConfig))
	l.start(stays)
	groups := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		m := l.machine(name, controlPlaneUserdata(newTestCA(t, "kubernetes"), etcd, initConfig))
		l.start(m)
		groups[l.d.clusters.nodes[m.ID].cluster.group] = true
		mustDo(t, l.d.Remove(t.Context(), m.ID))
	}
	if len(groups) != 1 || groups[l.d.clusters.nodes[stays.ID].cluster.group] {
		t.Errorf("clusters that came and went one after the other used groups %v", groups)
	}
}

func TestWorkerWithoutClusterLeavesNothing(t *testing.T) {
	l := newLab(t)
	ca := newTestCA(t, "kubernetes")
	m := l.machine("worker", workerUserdata(ca.hash(t)))
	mustDo(t, l.d.Ensure(t.Context(), m, driver.On))
	l.awaitClusters(1)
	mustDo(t, l.d.Remove(t.Context(), m.ID))
	l.awaitClusters(0)
}

func (l *lab) awaitClusters(want int) {
	l.t.Helper()
	have := func() int {
		l.d.clusters.mu.Lock()
		defer l.d.clusters.mu.Unlock()
		return len(l.d.clusters.byID)
	}
	for end := time.Now().Add(10 * time.Second); have() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("there are %d clusters, want %d", have(), want)
		}
	}
}
