package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/metal/client"
	"github.com/drover-dev/drover/internal/test/packettest"
)

func TestBootOf(t *testing.T) {
	state := func(body string) client.Event { return client.Event{Type: userState, Body: body} }
	for _, tc := range []struct {
		name   string
		events []client.Event // newest first
		want   *boot
	}{
		{name: "no reports"},
		{name: "a device that is up says nothing of its userdata", events: []client.Event{{Type: "provisioning.110", Body: "Device phoned home and is ready to go"}}},
		{name: "still running", events: []client.Event{state("running: executing the userdata"), state("running: userdata: ntp: skipped")}},
		{name: "done", events: []client.Event{state("succeeded: the userdata was carried out"), state("running: x")}, want: &boot{}},
		{name: "done, in one word", events: []client.Event{state("succeeded")}, want: &boot{}},
		{name: "failed, with the reason", events: []client.Event{state("failed: runcmd: exit status 1")}, want: &boot{failed: true, message: "runcmd: exit status 1"}},
		{
			name:   "done without some of it, in the order of the userdata",
			events: []client.Event{state("succeeded"), state("running: userdata: b: unknown key"), state("running: userdata: a: skipped"), {Type: "power.201"}},
			want:   &boot{message: "Userdata without effect: a: skipped; b: unknown key"},
		},
		{
			name:   "the last of two boots counts",
			events: []client.Event{state("succeeded"), state("failed: x"), state("running: userdata: old: note")}, want: &boot{},
		},
		{name: "a word that only begins alike", events: []client.Event{state("failedover: x")}},
		{name: "events of another kind with the same words", events: []client.Event{{Type: "driver.error", Body: "failed: x"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, bootOf(tc.events), cmp.AllowUnexported(boot{})); diff != "" {
				t.Errorf("boot (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotesAreTruncated(t *testing.T) {
	events := []client.Event{{Type: userState, Body: "succeeded"}}
	for range 100 {
		events = append(events, client.Event{Type: userState, Body: stateNote + strings.Repeat("long ", 10)})
	}
	if got := bootOf(events).message; !strings.HasSuffix(got, "and 95 more") || len(got) > 600 {
		t.Errorf("got %d characters: %s", len(got), got)
	}
}

func TestMachineReportsUserdataResult(t *testing.T) {
	for _, tc := range []struct {
		name, report, condition, ready string
		// poll is the latest time of the next request.
		poll time.Duration
	}{
		{name: "not yet", report: "running: executing the userdata", ready: "True", poll: 4 * time.Second},
		{name: "well", report: "succeeded", condition: "True BootstrapSucceeded", ready: "True", poll: 6 * time.Minute},
		{
			name: "ill", report: "failed: reading the cloud-config: yaml: line 3",
			condition: "False BootstrapFailed: The userdata failed on device", ready: "False IssuesReported: * BootstrapExecSucceeded: The userdata failed on device", poll: 4 * time.Second,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
			m, _ := w.run(t, "m")
			w.report(idOf(t, m), tc.report)
			w.API.SetState(idOf(t, m), "active")
			m, result := w.run(t, "m")
			has(t, m, "True InstanceActive")
			if !m.Status.Ready || m.Status.FailureReason != nil {
				t.Error("what the userdata does must not count as a failure of the device")
			}
			if got := packettest.Condition(m, infrav1.BootstrapExecSucceeded); !strings.HasPrefix(got, tc.condition) || (tc.condition == "") != (got == "") {
				t.Errorf("BootstrapExecSucceeded is %q, want %q", got, tc.condition)
			}
			if got := packettest.Condition(m, clusterv1.ReadyCondition); !strings.HasPrefix(got, tc.ready) {
				t.Errorf("Ready is %q, want %q", got, tc.ready)
			}
			if result.RequeueAfter == 0 || result.RequeueAfter > tc.poll {
				t.Errorf("asks again after %s", result.RequeueAfter)
			}
		})
	}
}

func TestRegisteredNodeCountsAsBooted(t *testing.T) {
	for name, tc := range map[string]struct {
		reports []string
		want    string
	}{
		"nothing":          {want: "True NodeJoined"},
		"that it failed":   {reports: []string{"failed: kubeadm"}, want: "True NodeJoined"},
		"a skipped key":    {reports: []string{stateNote + "ntp: skipped"}, want: "True NodeJoined: Userdata without effect: ntp: skipped"},
		"that and success": {reports: []string{stateNote + "ntp: skipped", "succeeded"}, want: "True NodeJoined: Userdata without effect: ntp: skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
			m, _ := w.run(t, "m")
			owner := &clusterv1.Machine{}
			w.Read(t, "m-m", owner)
			owner.Status.NodeRef = clusterv1.MachineNodeReference{Name: "m"}
			if err := w.Status().Update(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			w.report(idOf(t, m), tc.reports...)
			w.API.SetState(idOf(t, m), "active")
			m, result := w.run(t, "m")
			if got := packettest.Condition(m, infrav1.BootstrapExecSucceeded); got != tc.want || result.RequeueAfter < time.Minute {
				t.Errorf("got BootstrapExecSucceeded %q and a requeue after %s", got, result.RequeueAfter)
			}
			w.API.Requests()
			w.run(t, "m")
			if asked := w.API.Requests(); slices.ContainsFunc(asked, func(r string) bool { return strings.HasSuffix(r, "/events") }) {
				t.Errorf("got requests for events %v, want none", asked)
			}
		})
	}
}

func TestRunningUserdataIsPolledUntilItEnds(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m, _ := w.run(t, "m")
	owner := &clusterv1.Machine{}
	w.Read(t, "m-m", owner)
	owner.Status.NodeRef = clusterv1.MachineNodeReference{Name: "m"}
	if err := w.Status().Update(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	w.report(idOf(t, m), "running: executing the userdata")
	w.API.SetState(idOf(t, m), "active")
	m, result := w.run(t, "m")
	if got := packettest.Condition(m, infrav1.BootstrapExecSucceeded); got != "True NodeJoined: "+stillRunning || result.RequeueAfter > 2*time.Second {
		t.Errorf("got BootstrapExecSucceeded %q and a requeue after %s", got, result.RequeueAfter)
	}
	if got := packettest.Condition(m, clusterv1.ReadyCondition); !strings.Contains(got, stillRunning) {
		t.Errorf("Ready is %q: it must change when the userdata has run, so that the Machine does", got)
	}
	w.report(idOf(t, m), "running: executing the userdata", "succeeded: the userdata was carried out")
	m, result = w.run(t, "m")
	if got := packettest.Condition(m, infrav1.BootstrapExecSucceeded); got != "True NodeJoined" || result.RequeueAfter < time.Minute {
		t.Errorf("got BootstrapExecSucceeded %q and a requeue after %s", got, result.RequeueAfter)
	}
}

func TestFailedDeviceReportsTheCause(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	m, _ := w.run(t, "m")
	w.API.Change(idOf(t, m), func(d *packettest.Device) {
		d.State, d.Events = "failed", []packettest.Event{{Type: "provisioning.failed", Body: "the disk is on fire"}}
	})
	m, _ = w.run(t, "m")
	has(t, m, "False InstanceProvisionFailed")
	if !strings.Contains(instance(m), "failed to provision (the disk is on fire) and is being deleted") {
		t.Errorf("InstanceReady is %q", instance(m))
	}
}

func TestInvalidUserdataIsRejectedBeforeOrdering(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c", Userdata: "#cloud-config\nruncmd: [\n"})
	m, _ := w.run(t, "m")
	has(t, m, "False InvalidBootstrapData: The bootstrap data is not a valid cloud-config: see line")
	if len(w.API.Orders()) > 0 {
		t.Error("a device was ordered")
	}
	secret := &corev1.Secret{}
	w.Read(t, "m", secret)
	secret.Data["value"] = []byte("#cloud-config\nfrobnicate: '{{ this }}'\n")
	if err := w.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.up(t, "m")
	if got := w.API.Orders()[0]["userdata"]; got != "#cloud-config\nfrobnicate: '{{ this }}'\n" {
		t.Errorf("userdata is %q", got)
	}
}

func TestMissingBootstrapSecretIsWaitedFor(t *testing.T) {
	w := newWorld(t, nil)
	w.Machine(t, "m", packettest.MachineOptions{Cluster: "c"})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "m"}}
	if err := w.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	m, result := w.run(t, "m")
	has(t, m, `False InvalidBootstrapData: Secret "m" with the bootstrap data not found`)
	if result.RequeueAfter == 0 {
		t.Error("no requeue")
	}
}
