package cni

import (
	"context"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	fakesource "k8s.io/client-go/tools/cache/testing"
)

// awaitChange fails if no change is reported.
func awaitChange(t *testing.T, a *Agent, what string) {
	t.Helper()
	select {
	case <-a.changes:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s was not announced", what)
	}
}

func TestOnlyRelevantChangesAreReported(t *testing.T) {
	source := fakesource.NewFakeControllerSource()
	n := node("a", []string{"192.168.0.0/24"}, "10.0.0.1")
	source.Add(n)
	a := &Agent{Nodes: source}
	if err := a.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, a, "a new node")

	heartbeat := n.DeepCopy()
	heartbeat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	source.Modify(heartbeat)
	moved := heartbeat.DeepCopy()
	moved.Labels = map[string]string{"moved": "true"}
	moved.Status.Addresses[0].Address = "10.0.0.9"
	source.Modify(moved)
	awaitChange(t, a, "a new address")
	got, ok := a.store.List()[0].(*corev1.Node)
	if !ok || got.Status.Addresses[0].Address != "10.0.0.9" {
		t.Errorf("announced with %+v: before the address changed", a.store.List())
	}
	if len(got.Labels) > 0 || len(got.Status.Conditions) > 0 {
		t.Errorf("unused fields are kept: %+v", got)
	}
	source.Delete(moved)
	awaitChange(t, a, "a node that is gone")
}

func TestWatchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &Agent{Nodes: &cache.ListWatch{}}
	if err := a.watch(ctx); err == nil {
		t.Error("watching nodes with an ended context: got no error, want one")
	}
}

func TestDialWaitsForTheAPI(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	probe.Close()
	connected := make(chan error, 1)
	go func() {
		conn, err := dial(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
		}
		connected <- err
	}()
	select {
	case err := <-connected:
		t.Fatalf("connected without a server: %v", err)
	case <-time.After(2 * dialAgain):
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := <-connected; err != nil {
		t.Error(err)
	}
}
