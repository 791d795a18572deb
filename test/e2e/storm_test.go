package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	stormClients  = 6
	stormWrites   = 400 // per client, at least
	stormKills    = 6
	stormDeadline = 5 * time.Minute
)

// testWriteStorm writes from several clients while etcd and the API server are killed.
func testWriteStorm(t *testing.T, p *plane) {
	storm, cancel := context.WithTimeout(t.Context(), stormDeadline)
	defer cancel()
	calm := make(chan struct{})
	acknowledged := make([]map[string]string, stormClients)
	var clients sync.WaitGroup
	for i := range acknowledged {
		clients.Go(func() { acknowledged[i] = writeUntil(storm, calm, p, i) })
	}
	killInTurn(t, p)
	close(calm)
	clients.Wait()
	var list *corev1.ConfigMapList
	p.await("the API server answers after the last kill", func() (answers bool) {
		var err error
		list, err = p.kubernetes().CoreV1().ConfigMaps("default").List(ctx(t), metav1.ListOptions{})
		return err == nil
	})
	p.awaitReady()
	stored := map[string]string{}
	for _, c := range list.Items {
		stored[c.Name] = c.Data["value"]
	}
	total := 0
	for _, writes := range acknowledged {
		total += len(writes)
		for name, value := range writes {
			if stored[name] != value {
				t.Errorf("%s was acknowledged with %q and is %q", name, value, stored[name])
			}
		}
	}
	if total < stormClients*stormWrites {
		t.Errorf("%d writes were acknowledged, want at least %d", total, stormClients*stormWrites)
	}
	t.Logf("%d writes by %d clients, %d kills, all there", total, stormClients, stormKills)
}

// writeUntil writes until the storm is over and enough writes were acknowledged. It repeats a
// failed write, which may already exist.
func writeUntil(storm context.Context, calm <-chan struct{}, p *plane, id int) map[string]string {
	configMaps := p.kubernetes().CoreV1().ConfigMaps("default")
	acknowledged := map[string]string{}
	for n := 0; storm.Err() == nil && (n < stormWrites || !isClosed(calm)); {
		name, value := fmt.Sprintf("storm-%d-%d", id, n), strconv.FormatUint(rand.Uint64(), 10)
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": value}}
		callCtx, cancel := context.WithTimeout(storm, 5*time.Second)
		_, err := configMaps.Create(callCtx, obj, metav1.CreateOptions{})
		if err != nil {
			_, err = configMaps.Update(callCtx, obj, metav1.UpdateOptions{})
		}
		cancel()
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		acknowledged[name] = value
		n++
	}
	return acknowledged
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// killInTurn kills etcd and the API server in turn, each a random moment after both serve.
func killInTurn(t *testing.T, p *plane) {
	t.Helper()
	victims := []string{"etcd", "kube-apiserver"}
	for n := range stormKills {
		var s status
		p.await("etcd and the API server serve", func() bool {
			s = p.status()
			return s.component("etcd").State == "Ready" && s.component("kube-apiserver").State == "Ready"
		})
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		kill(t, s.component(victims[n%len(victims)]).PID)
	}
}
