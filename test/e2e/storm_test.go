package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	stormClients  = 6
	stormWrites   = 600
	stormKills    = 5
	stormDeadline = 4 * time.Minute
)

// TestAWriteStormLosesNothing writes from several clients while etcd and the
// API server are killed under them. What was acknowledged must be there.
func TestAWriteStormLosesNothing(t *testing.T) {
	p := newPlane(t)
	p.must("up")
	storm, cancel := context.WithTimeout(t.Context(), stormDeadline)
	defer cancel()
	acknowledged := make([]map[string]string, stormClients)
	var clients sync.WaitGroup
	for i := range acknowledged {
		clients.Go(func() { acknowledged[i] = writeMany(storm, p, i) })
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	kills := killWhile(t, p, done)
	p.awaitReady()

	list, err := p.kubernetes().CoreV1().ConfigMaps("default").List(ctx(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
	if total != stormClients*stormWrites || kills < stormKills {
		t.Errorf("%d writes were acknowledged and %d processes killed; want %d and at least %d", total, kills, stormClients*stormWrites, stormKills)
	}
	t.Logf("%d writes by %d clients, %d kills, all there", total, stormClients, kills)
}

// writeMany writes until all its writes are acknowledged. A write that fails
// is repeated, which may find it there already.
func writeMany(storm context.Context, p *plane, id int) map[string]string {
	configMaps := p.kubernetes().CoreV1().ConfigMaps("default")
	acknowledged := map[string]string{}
	for n := 0; n < stormWrites && storm.Err() == nil; {
		name, value := fmt.Sprintf("storm-%d-%d", id, n), fmt.Sprint(rand.Uint64())
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

// killWhile kills etcd and the API server in turn, each as soon as the plane
// serves again, until the clients are done.
func killWhile(t *testing.T, p *plane, done <-chan struct{}) (kills int) {
	t.Helper()
	victims := []string{"etcd", "kube-apiserver"}
	for {
		select {
		case <-done:
			return kills
		case <-time.After(time.Duration(300+rand.IntN(700)) * time.Millisecond):
		}
		s := p.status()
		victim := s.component(victims[kills%len(victims)])
		if kills < stormKills+2 && s.component("etcd").State == "Ready" && s.component("kube-apiserver").State == "Ready" {
			kill(t, victim.PID)
			kills++
		}
	}
}
