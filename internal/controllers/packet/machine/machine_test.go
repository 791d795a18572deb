package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/test/jumpclock"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestMachineGetsADeviceAndBecomesReady(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "cp", packettest.MachineOptions{
		Cluster: "c", ControlPlane: true, Userdata: "join {{ .controlPlaneEndpoint }} {{ .kubernetesVersion }}",
		Spec: func(s *infrav1.PacketMachineSpec) { s.BillingCycle = "hourly" },
	})
	m, result := w.run(t, "cp")
	has(t, m, "False InstanceProvisionStarted: Provisioning device")
	if result.RequeueAfter == 0 || result.RequeueAfter > 2*time.Second {
		t.Errorf("a new device is reconciled again after %s", result.RequeueAfter)
	}
	order := w.API.Orders()[0]
	delete(order, "tags")
	want := map[string]any{
		"hostname": "cp", "plan": "c3.small.x86", "operating_system": "ubuntu_24_04", "metro": "da", "billing_cycle": "hourly",
		"userdata": "join 203.0.113.250 v1.36.3",
	}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}

	w.API.SetState(idOf(t, m), "active")
	w.report(idOf(t, m), "succeeded")
	m, result = w.run(t, "cp")
	has(t, m, "True InstanceActive")
	if !m.Status.Ready || !ptr.Deref(m.Status.Initialization.Provisioned, false) || *m.Status.InstanceStatus != infrav1.InstanceActive {
		t.Errorf("status: %+v", m.Status)
	}
	if got := packettest.Condition(m, clusterv1.ReadyCondition); !strings.HasPrefix(got, "True") {
		t.Errorf("Ready is %q", got)
	}
	types := []clusterv1.MachineAddressType{clusterv1.MachineExternalIP, clusterv1.MachineInternalIP}
	for i, a := range m.Status.Addresses {
		if a.Type != types[i] {
			t.Errorf("addresses: %+v", m.Status.Addresses)
		}
	}
	if result.RequeueAfter < 5*time.Minute || result.RequeueAfter > 6*time.Minute {
		t.Errorf("an active device is reconciled again after %s", result.RequeueAfter)
	}
}

func TestIdleMachineIsNotWritten(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	before := w.up(t, "m")
	after, _ := w.run(t, "m")
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("resource version went from %s to %s", before.ResourceVersion, after.ResourceVersion)
	}
}

func TestMachineWaitConditions(t *testing.T) {
	t.Run("the cluster's infrastructure", func(t *testing.T) {
		p := packettest.NewWorld(t)
		p.Cluster(t, "c", nil)
		w := withController(p)
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
		m, _ := w.run(t, "m")
		has(t, m, "False WaitingForClusterInfrastructure")
	})
	t.Run("userdata, without asking the API", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", NoUserdata: true})
		m, _ := w.run(t, "m")
		has(t, m, "False WaitingForBootstrapData")
		if asked := w.API.Requests(); len(asked) > 0 {
			t.Errorf("asked %v", asked)
		}
	})
	t.Run("credentials", func(t *testing.T) {
		w := newWorld(t, func(c *infrav1.PacketCluster) {
			c.Spec.CredentialsRef = &infrav1.CredentialsReference{Name: "missing"}
		})
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
		m, result := w.run(t, "m")
		has(t, m, `False CredentialsInvalid: Secret "missing" not found`)
		if result.RequeueAfter == 0 {
			t.Error("no requeue")
		}
	})
	t.Run("userdata that says something", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", Userdata: "\n"})
		m, _ := w.run(t, "m")
		has(t, m, "False InvalidBootstrapData: The bootstrap data is empty")
	})
}

func TestStatesOfAProvisionedDevice(t *testing.T) {
	for _, tc := range []struct {
		state, condition string
		ready, failed    bool
	}{
		{state: "powering_off", condition: "False InstanceNotReady"},
		{state: "inactive", condition: "False InstanceStopped"},
		{state: "powering_on", condition: "False InstanceNotReady"},
		{state: "reinstalling", condition: "False InstanceNotReady"},
		{state: "deprovisioning", condition: "False InstanceTerminated"},
		{state: "something_new", condition: "False InstanceNotReady"},
		{state: "failed", condition: "False InstanceProvisionFailed", failed: true},
		{state: "gone", condition: "False InstanceNotFound", failed: true},
		{state: "active", condition: "True InstanceActive", ready: true},
	} {
		t.Run(tc.state, func(t *testing.T) {
			w := newWorld(t, nil)
			w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
			id := idOf(t, w.up(t, "m"))
			w.API.SetState(id, tc.state)
			m, result := w.run(t, "m")
			has(t, m, tc.condition)
			if m.Status.Ready != tc.ready || (m.Status.FailureReason != nil) != tc.failed {
				t.Errorf("ready %t, failure reason %v", m.Status.Ready, m.Status.FailureReason)
			}
			if result.RequeueAfter == 0 {
				t.Error("no requeue")
			}
			if devices := w.API.Devices(w.Project); len(devices) > 1 {
				t.Errorf("%d devices", len(devices))
			}
			if tc.state == "gone" {
				return
			}
			w.API.SetState(id, "active")
			m, _ = w.run(t, "m")
			has(t, m, "True InstanceActive")
			if m.Status.FailureReason != nil {
				t.Error("the failure is still reported, want it cleared with its cause")
			}
		})
	}
}

func TestUserTagsAreKept(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "cp", packettest.MachineOptions{
		Cluster: "c", ControlPlane: true, Spec: func(s *infrav1.PacketMachineSpec) { s.Tags = []string{"team:a", "rack:7"} },
	})
	m, _ := w.run(t, "cp")
	want := []string{
		"team:a", "rack:7", "capp:cluster-id:c", "capp:machine-uid:m-cp", "capp:namespace:" + w.Namespace,
		"drover:claim:" + m.Annotations[infrav1.ClaimAnnotation], "kubernetes.io/role:master", "kubernetes.io/version:v1.36.3",
		"drover:endpoint:lease",
	}
	if diff := cmp.Diff(want, w.API.Devices(w.Project)[0].Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestOnlyControlPlanesWithCPEMMoveTheirEndpoint(t *testing.T) {
	for name, tt := range map[string]struct {
		manager      infrav1.VIPManagerType
		controlPlane bool
		want         bool
	}{
		"a control plane":               {infrav1.VIPManagerCPEM, true, true},
		"a worker":                      {infrav1.VIPManagerCPEM, false, false},
		"a control plane with kube-vip": {infrav1.VIPManagerKubeVIP, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *infrav1.PacketCluster) { c.Spec.VIPManager = tt.manager })
			w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", ControlPlane: tt.controlPlane})
			w.run(t, "m")
			if got := slices.Contains(w.API.Devices(w.Project)[0].Tags, "drover:endpoint:lease"); got != tt.want {
				t.Errorf("the machine moves its endpoint: %t, want %t", got, tt.want)
			}
		})
	}
}

func TestHardwareReservations(t *testing.T) {
	const one, two = "8c3f5e9c-27b5-4d4e-9d0f-6c1f5b6c0001", "8c3f5e9c-27b5-4d4e-9d0f-6c1f5b6c0002"
	for _, tc := range []struct {
		name, field string
		busy        int
		want        []string
	}{
		{name: "a single one is used", field: one, want: []string{one}},
		{name: "next-available is passed on", field: "next-available", want: []string{"next-available"}},
		{name: "the first of a list is used", field: one + "," + two, want: []string{one}},
		{name: "the next of a list is used if the first is busy", field: one + ", " + two, busy: 1, want: []string{two}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", Spec: func(s *infrav1.PacketMachineSpec) { s.HardwareReservationID = tc.field }})
			if tc.busy > 0 {
				w.API.Fail(packettest.Fault{Method: "POST", Path: "/devices", Times: tc.busy, Status: 422, Body: `{"errors":["Server is not provisionable"]}`})
			}
			w.run(t, "m")
			var got []string
			for _, order := range w.API.Orders() {
				got = append(got, order["hardware_reservation_id"].(string))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reservations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSSHKeys(t *testing.T) {
	const public = "ssh-ed25519 AAAAC3Nz someone@example"
	const id = "0b5f4f4e-7d0c-4a37-9b5d-8c9f7e6a0001"
	t.Run("public keys, ids and labels are all used", func(t *testing.T) {
		w := newWorld(t, nil)
		w.API.AddKey(packettest.Key{ID: "key-1", Label: "mine"})
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", Spec: func(s *infrav1.PacketMachineSpec) {
			s.SSHKeys = []string{public, id, "mine", "nobody's", ""}
		}})
		w.run(t, "m")
		order := w.API.Orders()[0]
		if diff := cmp.Diff([]any{map[string]any{"label": "someone@example", "key": public}}, order["ssh_keys"]); diff != "" {
			t.Errorf("public keys (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]any{id, "key-1"}, order["project_ssh_keys"]); diff != "" {
			t.Errorf("keys of the project (-want +got):\n%s", diff)
		}
	})
	t.Run("a project without keys is no obstacle", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
		w.API.Fail(packettest.Fault{Method: "POST", Path: "/devices", Times: 1, Status: 422, Body: `{"errors":["Project has no SSH keys"]}`})
		w.run(t, "m")
		if orders := w.API.Orders(); len(orders) != 1 || fmt.Sprint(orders[0]["no_ssh_keys"]) != "true" {
			t.Errorf("orders: %v", orders)
		}
	})
}

func TestTransientErrorsAreNotTerminal(t *testing.T) {
	const page = "<html><body>Request blocked</body></html>"
	faults := map[string]packettest.Fault{
		"rate limit":                    {Status: 429, Header: map[string]string{"Retry-After": "7"}},
		"rate limit as 403 with a page": {Status: 403, Body: page},
		"403 of an exhausted budget":    {Status: 403, Body: `{"errors":["no"]}`, Header: map[string]string{"X-RateLimit-Remaining": "0"}},
		"500":                           {Status: 500, Body: `{"errors":["Oh snap, something went wrong!"]}`},
		"502 with a page":               {Status: 502, Body: page},
		"503":                           {Status: 503},
		"503 without reservations":      {Status: 503, Body: `{"errors":["There are no available hardware reservations for this plan"]}`},
		"404 with a page":               {Status: 404, Body: page},
		"401":                           {Status: 401, Body: `{"errors":["Invalid authentication token"]}`},
		"closed connection":             {},
		"closed connection, afterwards": {After: true},
		"truncated body":                {Truncate: true},
		"no capacity in the facility":   {Status: 422, Body: `{"errors":["The facility ewr1 has no provisionable c3.small.x86 servers matching your criteria"]}`},
		"no capacity in the metro":      {Status: 422, Body: `{"errors":["There aren't available servers in that metro"]}`},
		"a refusal":                     {Status: 422, Body: `{"errors":["Plan can't be blank"]}`},
	}
	calls := map[string][2]string{
		"ordering":  {"POST", "/devices"},
		"searching": {"GET", "/devices"},
		"all":       {"", ""},
	}
	for call, selector := range calls {
		for name, fault := range faults {
			t.Run(call+": "+name, func(t *testing.T) {
				w := newWorld(t, nil)
				w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
				fault.Method, fault.Path = selector[0], selector[1]
				w.API.Fail(fault)
				m, result := w.run(t, "m")
				if m.Status.FailureReason != nil || m.Status.FailureMessage != nil {
					t.Fatalf("failed for good: %s", *m.Status.FailureMessage)
				}
				if result.RequeueAfter == 0 {
					t.Fatalf("no retry: %s", instance(m))
				}
				w.API.Heal()
				w.Pass(10 * time.Minute)
				w.up(t, "m")
				if devices := w.API.Devices(w.Project); len(devices) != 1 {
					t.Errorf("%d devices, want one", len(devices))
				}
			})
		}
	}
}

func TestFaultsNeverMakeAReadyMachineUnready(t *testing.T) {
	for name, fault := range map[string]packettest.Fault{
		"rate limit":                    {Status: 429},
		"rate limit as 403 with a page": {Status: 403, Body: "<html>"},
		"500":                           {Status: 500},
		"404 with a page":               {Status: 404, Body: "<html>"},
		"401":                           {Status: 401, Body: `{"errors":["Invalid authentication token"]}`},
		"closed connection":             {},
		"truncated body":                {Truncate: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
			w.up(t, "m")
			w.API.Fail(fault)
			m, _ := w.run(t, "m")
			if !m.Status.Ready || m.Status.FailureReason != nil || !strings.HasPrefix(instance(m), "Unknown") {
				t.Errorf("ready %t, %s", m.Status.Ready, instance(m))
			}
		})
	}
}

func TestForbiddenDeviceIsLostOnlyIfUnlisted(t *testing.T) {
	t.Run("listed", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
		id := idOf(t, w.up(t, "m"))
		w.API.Fail(packettest.Fault{Method: "GET", Path: "/devices/" + id, Status: 403, Body: `{"errors":["You are not authorized to view this device"]}`})
		m, _ := w.run(t, "m")
		has(t, m, "True InstanceActive")
	})
	t.Run("vanished before it was up: another one is ordered", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
		m, _ := w.run(t, "m")
		first := idOf(t, m)
		w.API.Change(first, func(d *packettest.Device) { d.Hidden = true })
		m, _ = w.run(t, "m")
		if second := idOf(t, m); second == first || m.Status.FailureReason != nil || m.Status.Provisioning.Failures != 1 {
			t.Errorf("device %s after %s, %+v", second, first, m.Status)
		}
	})
	t.Run("vanished again and again: left to a MachineHealthCheck", func(t *testing.T) {
		w := newWorld(t, nil)
		w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
		var m *infrav1.PacketMachine
		for range maxFailures {
			m, _ = w.run(t, "m")
			w.API.Change(idOf(t, m), func(d *packettest.Device) { d.Hidden = true })
		}
		m, _ = w.run(t, "m")
		has(t, m, "False InstanceProvisionFailed: Provisioning failed 3 times")
		if ptr.Deref(m.Status.FailureReason, "") != infrav1.FailureCreate || len(w.API.Orders()) != maxFailures {
			t.Errorf("failure reason %v after %d orders", m.Status.FailureReason, len(w.API.Orders()))
		}
	})
}

func TestFailedDeviceIsReplacedBeforeFirstBoot(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m, _ := w.run(t, "m")
	first := idOf(t, m)
	w.API.SetState(first, "failed")
	m, _ = w.run(t, "m")
	if got := w.API.Devices(w.Project)[0].State; got != "deprovisioning" {
		t.Fatalf("the failed device is %s, want it removed; %s", got, instance(m))
	}
	if len(w.API.Orders()) != 1 {
		t.Fatal("another device was ordered while the reservation was still taken")
	}
	w.API.SetState(first, "gone")
	m, _ = w.run(t, "m")
	if idOf(t, m) == first || len(w.API.Orders()) != 2 {
		t.Errorf("device %s, %d orders", idOf(t, m), len(w.API.Orders()))
	}
}

func TestLostResponseCreatesNoSecondDevice(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	w.API.Fail(packettest.Fault{Method: "POST", Path: "/devices", Times: 1, Truncate: true})
	for range 2 { // the first reconcile sets the condition Paused, the second orders
		if _, err := w.Controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: ctrlclient.ObjectKey{Namespace: w.Namespace, Name: "m"}}); err != nil {
			t.Fatal(err)
		}
	}
	m := &infrav1.PacketMachine{}
	w.Read(t, "m", m)
	if m.Spec.ProviderID != nil || len(w.API.Orders()) != 1 {
		t.Fatalf("recorded %v after %d orders, but the response was lost", m.Spec.ProviderID, len(w.API.Orders()))
	}
	m, _ = w.run(t, "m")
	devices := w.API.Devices(w.Project)
	if len(devices) != 1 || idOf(t, m) != devices[0].ID {
		t.Errorf("%d devices, recorded %v", len(devices), m.Spec.ProviderID)
	}
}

// TestClockDoesNotDecideAboutOrders sets the clock after the response to an order was lost. While
// the order may still be carried out, it is neither repeated nor is the machine released; then it
// is.
func TestClockDoesNotDecideAboutOrders(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for name, jump := range map[string]time.Duration{"forward": year, "back": -year} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deleted %t", name, deleted), func(t *testing.T) {
				w := newWorld(t, nil)
				clock := jumpclock.New(w.World.Clock.Now())
				w.Controller.Clock = clock
				machine := w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
				w.API.Fail(packettest.Fault{Method: "POST", Path: "/devices", Times: 1})
				w.run(t, "m")
				if deleted {
					if err := w.Delete(t.Context(), machine); err != nil {
						t.Fatal(err)
					}
				}
				clock.Jump(jump)
				clock.Pass(orderGrace - time.Second)
				if m, _ := w.run(t, "m"); m.Name == "" || len(w.API.Orders()) > 0 {
					t.Fatalf("got machine %q and %d orders, want it to wait and order nothing", m.Name, len(w.API.Orders()))
				}
				clock.Pass(2 * time.Second)
				m, _ := w.run(t, "m")
				if deleted && m.Name != "" || !deleted && len(w.API.Orders()) != 1 {
					t.Errorf("the machine is %q after %d orders", m.Name, len(w.API.Orders()))
				}
			})
		}
	}
}

func TestDeviceWithoutLocationIsAccepted(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m, _ := w.run(t, "m")
	w.API.Change(idOf(t, m), func(d *packettest.Device) { d.Metro, d.Facility = "", "" })
	w.up(t, "m")
}

func TestDeviceInTheWrongMetroIsReported(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m, _ := w.run(t, "m")
	w.API.Change(idOf(t, m), func(d *packettest.Device) { d.Metro, d.State = "sv", "active" })
	m, _ = w.run(t, "m")
	has(t, m, "False InstanceMisplaced: The device is in metro sv, but the machine requires da")
}

func TestCrashBeforeRecordingLeavesOneDevice(t *testing.T) {
	for name, fault := range map[string]packettest.Fault{
		"the manager is killed when the order was carried out": {After: true},
		"the manager is killed when the order was sent":        {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			addForeignDevices(w, 25)
			w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
			ctx, kill := contextWithKill(t)
			fault.Method, fault.Path, fault.Times, fault.Do = "POST", "/devices", 1, kill
			w.API.Fail(fault)
			for range 4 {
				_, _ = w.Controller.Reconcile(ctx, request(w, "m"))
			}
			if ctx.Err() == nil {
				t.Fatal("the manager was never killed")
			}

			successor := withController(w.World)
			successor.run(t, "m")
			w.Pass(orderGrace + time.Second)
			m := successor.up(t, "m")
			own := ownDevices(w, "m")
			if len(own) != 1 || own[0].ID != idOf(t, m) {
				t.Errorf("%d devices for the machine, want exactly one", len(own))
			}
		})
	}
}

func TestLateOrderIsDeleted(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	w.run(t, "m")
	late := w.API.AddDevice(packettest.Device{Project: w.Project, State: "provisioning", Tags: w.API.Devices(w.Project)[0].Tags})
	m := w.up(t, "m")
	if idOf(t, m) == late {
		t.Error("the machine changed its device")
	}
	for _, d := range w.API.Devices(w.Project) {
		if d.ID == late && d.State != "deprovisioning" {
			t.Errorf("the second device is %s", d.State)
		}
	}
}

func TestDeletionFindsUnrecordedDevices(t *testing.T) {
	w := newWorld(t, nil)
	addForeignDevices(w, 25)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m, _ := w.run(t, "m")
	id := idOf(t, m)
	m.Spec.ProviderID = nil
	if err := w.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.remove(t, "m")
	if got := stateOf(w, id); got != "deprovisioning" {
		t.Fatalf("the device is %q", got)
	}
	w.API.SetState(id, "gone")
	w.Pass(time.Minute)
	w.run(t, "m")
	if !w.Gone(t, "m", m) || len(w.API.Devices(w.Project)) != 25 {
		t.Errorf("gone %t, %d devices", w.Gone(t, "m", m), len(w.API.Devices(w.Project)))
	}
}

func TestFinalizerStaysUntilTheDeviceIsDeleted(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	id := idOf(t, w.up(t, "m"))

	w.API.Fail(packettest.Fault{Method: "DELETE", Status: 422, Body: `{"errors":["Cannot delete a device while it is provisioning"]}`})
	m := w.remove(t, "m")
	if w.Gone(t, "m", m) || stateOf(w, id) != "active" {
		t.Fatal("the finalizer was removed before the device, want it kept")
	}
	w.API.Heal()
	m, _ = w.run(t, "m")
	has(t, m, "False Deleting: Waiting for device")
	for _, fault := range []packettest.Fault{{Status: 500}, {Status: 403, Body: "<html>"}, {Status: 404, Body: "<html>"}, {Status: 401, Body: `{}`}, {}} {
		w.API.Fail(fault)
		w.run(t, "m")
		w.API.Heal()
		w.Pass(20 * time.Minute)
		if w.Gone(t, "m", m) {
			t.Fatalf("the finalizer was removed after %+v, want it kept", fault)
		}
	}
	w.API.SetState(id, "deleted")
	w.run(t, "m")
	if !w.Gone(t, "m", m) {
		t.Error("the machine still exists without its device, want it deleted")
	}
}

func TestMachineWithoutDeviceIsDeletedOffline(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", NoUserdata: true})
	w.run(t, "m")
	w.API.Fail(packettest.Fault{Status: 500})
	w.API.Requests()
	m := w.remove(t, "m")
	if !w.Gone(t, "m", m) || len(w.API.Requests()) > 0 {
		t.Error("the machine still exists or the API was called, want it deleted without a call")
	}
}

func TestClustersOfTheSameNameShareNoDevice(t *testing.T) {
	w := newWorld(t, nil)
	other := w.Sibling(t)
	other.ReadyCluster(t, "c", nil)
	o := withController(other)
	for _, one := range []*world{w, o} {
		one.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	}
	a, _ := w.run(t, "m")
	b, _ := o.run(t, "m")
	if idOf(t, a) == idOf(t, b) {
		t.Fatal("both have the same device")
	}
	w.remove(t, "m")
	if stateOf(w, idOf(t, b)) != "queued" {
		t.Error("deleting one touched the other's device")
	}
}

func TestUpstreamDeviceIsAdopted(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	const old = "cluster-api-provider-packet:"
	id := w.API.AddDevice(packettest.Device{Project: w.Project, State: "active", Metro: "da", Tags: []string{
		old + "cluster-id:c", old + "machine-uid:m-m", old + "namespace:" + w.Namespace,
	}})
	m, _ := w.run(t, "m")
	if idOf(t, m) != id || len(w.API.Orders()) != 0 {
		t.Errorf("device %s, %d orders", idOf(t, m), len(w.API.Orders()))
	}
}

func TestBGPSessionsAreCreatedOnceForControlPlanes(t *testing.T) {
	w := newWorld(t, func(c *infrav1.PacketCluster) { c.Spec.VIPManager = infrav1.VIPManagerKubeVIP })
	w.Machine(t, "cp", packettest.MachineOptions{Cluster: "c", ControlPlane: true})
	w.Machine(t, "worker", packettest.MachineOptions{Cluster: "c"})
	w.API.Fail(packettest.Fault{Method: "POST", Path: "/bgp/sessions", Times: 1, Status: 500})
	m := w.up(t, "cp")
	w.up(t, "worker")
	if got := packettest.Condition(m, infrav1.BGPSessionReady); !strings.HasPrefix(got, "True") {
		t.Errorf("BGPSessionReady is %q", got)
	}
	sessions := []int{}
	for _, d := range w.API.Devices(w.Project) {
		sessions = append(sessions, d.Sessions)
	}
	if diff := cmp.Diff([]int{1, 0}, sessions); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

func TestFailureDomainSetsTheMetro(t *testing.T) {
	w := newWorld(t, func(c *infrav1.PacketCluster) {
		c.Spec.FailureDomains = []infrav1.PacketFailureDomain{{Metro: "da"}, {Metro: "sv"}}
	})
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", Owner: func(m *clusterv1.Machine) { m.Spec.FailureDomain = "sv" }})
	m := w.up(t, "m")
	if w.API.Devices(w.Project)[0].Metro != "sv" || m.Status.FailureDomain != "sv" {
		t.Errorf("device is in %s, status says %s", w.API.Devices(w.Project)[0].Metro, m.Status.FailureDomain)
	}
}

func TestPausedMachinesAreSkipped(t *testing.T) {
	w := newWorld(t, nil)
	m := w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	if err := w.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m, _ = w.run(t, "m")
	if got := packettest.Condition(m, clusterv1.PausedCondition); !strings.HasPrefix(got, "True") || len(w.API.Orders()) != 0 {
		t.Errorf("Paused is %q, %d orders", got, len(w.API.Orders()))
	}
}

func TestUserdataNeverContainsTheAPIKey(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "cp", packettest.MachineOptions{Cluster: "c", ControlPlane: true, Userdata: `{"apiKey": "{{ .apiKey }}"}`})
	w.run(t, "cp")
	if got := w.API.Orders()[0]["userdata"]; got != `{"apiKey": ""}` {
		t.Errorf("userdata is %q", got)
	}
	if !slices.ContainsFunc(drain(w), func(e string) bool { return strings.Contains(e, "APIKeyWithheld") }) {
		t.Error("no event")
	}
}

func TestMovedMachineKeepsItsDevice(t *testing.T) {
	for _, state := range []string{"active", "failed", "gone"} {
		t.Run(state, func(t *testing.T) {
			w := newWorld(t, nil)
			id := w.API.AddDevice(packettest.Device{Project: w.Project, State: "active", Metro: "da"})
			w.API.SetState(id, state)
			provider := providerPrefix + id
			w.Machine(t, "m", packettest.MachineOptions{
				Cluster: "c",
				Spec:    func(s *infrav1.PacketMachineSpec) { s.ProviderID = &provider },
				Owner:   func(m *clusterv1.Machine) { m.Spec.ProviderID = provider },
			})
			m, _ := w.run(t, "m")
			if idOf(t, m) != id || len(w.API.Orders()) > 0 || stateOf(w, id) != state {
				t.Errorf("device %s is %s, %d orders", idOf(t, m), stateOf(w, id), len(w.API.Orders()))
			}
		})
	}
}
