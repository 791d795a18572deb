package machine

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/contents"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/test/packettest"
)

var errKilled = errors.New("the manager was killed")

// mortal is a manager that is killed as soon as it receives the response to an order: it writes
// nothing afterwards.
type mortal struct {
	client.Client
	dead atomic.Bool
}

func (m *mortal) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if m.dead.Load() {
		return errKilled
	}
	return m.Client.Patch(ctx, obj, patch, opts...)
}

func (m *mortal) Status() client.SubResourceWriter { return mortalStatus{m.Client.Status(), m} }

type mortalStatus struct {
	client.SubResourceWriter
	manager *mortal
}

func (s mortalStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if s.manager.dead.Load() {
		return errKilled
	}
	return s.SubResourceWriter.Patch(ctx, obj, patch, opts...)
}

// RoundTrip makes the response to an order the last one that the manager receives.
func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/devices") {
		m.dead.Store(true)
	}
	return res, err
}

func TestManagerKilledAfterOrderingLeavesOneDevice(t *testing.T) {
	w := newWorld(t, nil)
	addForeignDevices(w, 25)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m := &mortal{Client: w.World.Client}
	dying := withController(w.World)
	dying.Controller.Client = m
	dying.Controller.Access = &access.Source{Secrets: contents.New(m, m), Default: w.World.Access.Default, Clock: w.World.Clock, HTTP: &http.Client{Transport: m}}
	var err error
	for range 4 {
		if _, err = dying.Controller.Reconcile(t.Context(), request(w, "m")); err != nil {
			break
		}
	}
	if !errors.Is(err, errKilled) || len(ownDevices(w, "m")) != 1 {
		t.Fatalf("%d devices, and the manager ended with %v", len(ownDevices(w, "m")), err)
	}

	successor := withController(w.World)
	machine := successor.up(t, "m")
	if own := ownDevices(w, "m"); len(own) != 1 || own[0].ID != idOf(t, machine) || len(w.API.Orders()) != 1 {
		t.Errorf("%d devices after %d orders, want exactly one", len(own), len(w.API.Orders()))
	}
}
