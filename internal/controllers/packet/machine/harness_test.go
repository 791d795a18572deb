package machine

import (
	"os"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a ready cluster named "c" and a controller.
type world struct {
	*packettest.World
	*Controller
}

// newWorld runs the test in parallel with others, which share only the API server.
func newWorld(t *testing.T, change func(*infrav1.PacketCluster)) *world {
	t.Helper()
	t.Parallel()
	w := packettest.NewWorld(t)
	w.ReadyCluster(t, "c", change)
	return withController(w)
}

func withController(w *packettest.World) *world {
	return &world{w, &Controller{Client: w.Client, Access: w.Access, Events: w.Events, Clock: w.Clock, PollInterval: 5 * time.Minute}}
}

// run reconciles a machine and returns it.
func (w *world) run(t *testing.T, name string) (*infrav1.PacketMachine, ctrl.Result) {
	t.Helper()
	result := w.World.Reconcile(t, w.Controller, name)
	m := &infrav1.PacketMachine{}
	if !w.Gone(t, name, m) {
		lint(t, m)
	}
	return m, result
}

// lint checks the rules for every status.
func lint(t *testing.T, m *infrav1.PacketMachine) {
	t.Helper()
	for _, c := range m.Status.Conditions {
		switch {
		case c.Status == "" || c.Reason == "" || c.LastTransitionTime.IsZero():
			t.Errorf("condition %s is not complete: %+v", c.Type, c)
		case c.Status != "True" && c.Message == "" && c.Type != "Paused":
			t.Errorf("condition %s is %s without a message", c.Type, c.Status)
		case strings.Contains(c.Message, packettest.Token):
			t.Errorf("condition %s contains the token", c.Type)
		}
	}
	if strings.HasPrefix(instance(m), "True") && !m.Status.Ready || strings.HasPrefix(instance(m), "False") && m.Status.Ready {
		t.Errorf("ready is %t, condition is %q", m.Status.Ready, instance(m))
	}
}

// up reconciles a machine until its device is active.
func (w *world) up(t *testing.T, name string) *infrav1.PacketMachine {
	t.Helper()
	m, _ := w.run(t, name)
	w.API.SetState(idOf(t, m), "active")
	m, _ = w.run(t, name)
	if !m.Status.Ready {
		t.Fatalf("machine is not up: %s", packettest.Condition(m, infrav1.InstanceReady))
	}
	return m
}

func idOf(t *testing.T, m *infrav1.PacketMachine) string {
	t.Helper()
	if m.Spec.ProviderID == nil {
		t.Fatalf("no device: %s", packettest.Condition(m, infrav1.InstanceReady))
	}
	return strings.TrimPrefix(*m.Spec.ProviderID, providerPrefix)
}

func instance(m *infrav1.PacketMachine) string { return packettest.Condition(m, infrav1.InstanceReady) }

// has checks the start of the condition.
func has(t *testing.T, m *infrav1.PacketMachine, words string) {
	t.Helper()
	if got := instance(m); !strings.HasPrefix(got, words) {
		t.Errorf("InstanceReady is %q, want it to begin with %q", got, words)
	}
}
