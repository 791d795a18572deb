package memory

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// TestManyClusters runs clusters of one control plane and two workers concurrently; MEMORY_CLUSTERS
// sets the number.
func TestManyClusters(t *testing.T) {
	count := 5
	if n, err := strconv.Atoi(os.Getenv("MEMORY_CLUSTERS")); err == nil {
		count = n
	}
	l := newLab(t)
	etcd := newTestCA(t, "etcd")
	cas := make([]testCA, count)
	hosts := make([]string, count)
	began := time.Now()
	var starting sync.WaitGroup
	for i := range count {
		cas[i] = newTestCA(t, fmt.Sprintf("cluster-%d", i))
		cp := l.machine(fmt.Sprintf("c%d-cp", i), controlPlaneUserdata(cas[i], etcd, initConfig))
		hosts[i] = cp.Addresses[0].IP.String()
		machines := []driver.Machine{cp}
		for w := range 2 {
			machines = append(machines, l.machine(fmt.Sprintf("c%d-w%d", i, w), workerUserdata(cas[i].hash(t))))
		}
		starting.Go(func() {
			for _, m := range machines {
				mustDo(t, l.d.Ensure(t.Context(), m, driver.On))
			}
		})
	}
	starting.Wait()
	for i := range count {
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if answersAll(l, hosts[i], cas[i]) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("cluster %d is not complete", i)
			}
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("%d clusters after %s, %d MiB of heap", count, time.Since(began).Round(time.Millisecond), m.HeapAlloc>>20)
}

// answersAll reports whether a cluster serves and has its three nodes.
func answersAll(l *lab, host string, ca testCA) bool {
	list, err := kubernetes.NewForConfigOrDie(config(host, ca)).CoreV1().Nodes().List(l.t.Context(), metav1.ListOptions{})
	return err == nil && len(list.Items) == 3
}
