package machine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/packettest"
)

// addForeignDevices adds devices of other machines to the project, more than fit on a page.
func addForeignDevices(w *world, n int) {
	for i := range n {
		w.API.AddDevice(packettest.Device{Project: w.Project, State: "active", Tags: []string{
			"capp:cluster-id:c", fmt.Sprintf("capp:machine-uid:other-%d", i), "capp:namespace:" + w.Namespace,
		}})
	}
}

func contextWithKill(t *testing.T) (context.Context, func()) {
	return context.WithCancel(t.Context())
}

func request(w *world, name string) ctrl.Request {
	return ctrl.Request{NamespacedName: ctrlclient.ObjectKey{Namespace: w.Namespace, Name: name}}
}

func ownDevices(w *world, name string) []packettest.Device {
	return slices.DeleteFunc(w.API.Devices(w.Project), func(d packettest.Device) bool {
		return !slices.Contains(d.Tags, "capp:machine-uid:m-"+name)
	})
}

func stateOf(w *world, id string) string {
	for _, d := range w.API.Devices(w.Project) {
		if d.ID == id {
			return d.State
		}
	}
	return "gone"
}

// remove deletes a machine and reconciles it.
func (w *world) remove(t *testing.T, name string) *infrav1.PacketMachine {
	t.Helper()
	m := &infrav1.PacketMachine{}
	w.Read(t, name, m)
	if err := w.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m, _ = w.run(t, name)
	return m
}

func drain(w *world) []string {
	var events []string
	for {
		select {
		case e := <-w.World.Events.Events:
			events = append(events, e)
		default:
			return events
		}
	}
}

// report simulates a report of the machine on a device.
func (w *world) report(device string, words ...string) {
	w.API.Change(device, func(d *packettest.Device) {
		for _, body := range words {
			d.Events = append(d.Events, packettest.Event{Type: userState, Body: body})
		}
	})
}
