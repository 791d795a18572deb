package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/metal/client"
)

func inState(state string) *client.Device { return &client.Device{ID: "d", State: state} }

func TestInstanceCondition(t *testing.T) {
	silent := &reconcile.Wait{Reason: infrav1.APIRateLimitedReason, Message: "M"}
	for name, tt := range map[string]struct {
		facts                   facts
		status, reason, message string
	}{
		"no device":                 {facts{}, "Unknown", infrav1.InstanceNotReadyReason, "Waiting for the state of the device"},
		"a wait":                    {facts{wait: &reconcile.Wait{Reason: "R", Message: "M"}, provisioned: true}, "False", "R", "M"},
		"no response before":        {facts{wait: silent}, "False", infrav1.APIRateLimitedReason, "M"},
		"no response after":         {facts{wait: silent, provisioned: true}, "Unknown", infrav1.APIRateLimitedReason, "M"},
		"active":                    {facts{device: inState("active")}, "True", infrav1.InstanceActiveReason, ""},
		"active elsewhere":          {facts{device: inState("active"), misplaced: "The device is in metro sv, but the machine requires da"}, "False", infrav1.InstanceMisplacedReason, "The device is in metro sv, but the machine requires da: delete the Machine"},
		"queued":                    {facts{device: inState("queued")}, "False", infrav1.InstanceProvisionStartedReason, `Provisioning device "d"`},
		"without a state":           {facts{device: inState("")}, "False", infrav1.InstanceProvisionStartedReason, `Provisioning device "d"`},
		"powered off":               {facts{device: inState("inactive")}, "False", infrav1.InstanceStoppedReason, `Device "d" is powered off`},
		"failed":                    {facts{device: inState("failed"), cause: "disk"}, "False", infrav1.InstanceProvisionFailedReason, `Device "d" failed to provision (disk): delete the Machine, or let a MachineHealthCheck replace it`},
		"removed before it was up":  {facts{device: inState("deprovisioning")}, "False", infrav1.InstanceProvisionFailedReason, `Device "d" failed to provision and is being deleted; another will be ordered`},
		"removed by someone else":   {facts{device: inState("deprovisioning"), provisioned: true}, "False", infrav1.InstanceTerminatedReason, `Device "d" is being deleted, but not by Drover`},
		"in a state of its own":     {facts{device: inState("rescuing")}, "False", infrav1.InstanceNotReadyReason, `Device "d" is in state rescuing`},
		"reinstalling after a boot": {facts{device: inState("reinstalling"), provisioned: true}, "False", infrav1.InstanceNotReadyReason, `Device "d" is in state reinstalling`},
	} {
		t.Run(name, func(t *testing.T) {
			want := metav1.Condition{Type: infrav1.InstanceReady, Status: metav1.ConditionStatus(tt.status), Reason: tt.reason, Message: tt.message}
			if diff := cmp.Diff(want, instanceCondition(tt.facts)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSessionCondition(t *testing.T) {
	for name, tt := range map[string]struct {
		session *session
		want    *metav1.Condition
	}{
		"none wanted": {nil, nil},
		"started":     {&session{}, &metav1.Condition{Type: infrav1.BGPSessionReady, Status: "True", Reason: infrav1.BGPSessionRecordedReason}},
		"failed":      {&session{problem: "M"}, &metav1.Condition{Type: infrav1.BGPSessionReady, Status: "False", Reason: infrav1.APIUnavailableReason, Message: "M"}},
	} {
		if diff := cmp.Diff(tt.want, sessionCondition(facts{session: tt.session})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBootCondition(t *testing.T) {
	for name, tt := range map[string]struct {
		boot *boot
		want *metav1.Condition
	}{
		"unknown":   {nil, nil},
		"joined":    {&boot{joined: true, message: "M"}, &metav1.Condition{Status: "True", Reason: infrav1.NodeJoinedReason, Message: "M"}},
		"failed":    {&boot{failed: true, message: "exit status 1"}, &metav1.Condition{Status: "False", Reason: infrav1.BootstrapFailedReason, Message: `The userdata failed on device "d": exit status 1`}},
		"succeeded": {&boot{}, &metav1.Condition{Status: "True", Reason: infrav1.BootstrapSucceededReason}},
	} {
		if tt.want != nil {
			tt.want.Type = infrav1.BootstrapExecSucceeded
		}
		if diff := cmp.Diff(tt.want, bootCondition(facts{boot: tt.boot, device: inState("active")})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDeprecatedFailureFields(t *testing.T) {
	for name, tt := range map[string]struct {
		facts facts
		want  *string
	}{
		"nothing":                     {facts{device: inState("active"), provisioned: true}, nil},
		"a first failure":             {facts{device: inState("failed")}, nil},
		"too many failures":           {facts{exhausted: true}, ptr.To(infrav1.FailureCreate)},
		"lost before it was active":   {facts{lost: "d"}, nil},
		"lost after it was active":    {facts{lost: "d", provisioned: true}, ptr.To(infrav1.FailureUpdate)},
		"failed after it was active":  {facts{device: inState("failed"), provisioned: true}, ptr.To(infrav1.FailureUpdate)},
		"powered off after it was up": {facts{device: inState("inactive"), provisioned: true}, nil},
	} {
		reason, message := failureOf(tt.facts, "M")
		if !cmp.Equal(reason, tt.want) || (message != nil) != (tt.want != nil) {
			t.Errorf("%s: reason %v, message %v, want reason %v", name, ptr.Deref(reason, "none"), message, ptr.Deref(tt.want, "none"))
		}
	}
}

func TestAddresses(t *testing.T) {
	d := &client.Device{IPAddresses: []client.IPAssignment{{Address: "198.18.0.2", Public: true}, {}, {Address: "10.128.0.2"}}}
	want := []clusterv1.MachineAddress{
		{Type: clusterv1.MachineExternalIP, Address: "198.18.0.2"}, {Type: clusterv1.MachineInternalIP, Address: "10.128.0.2"},
	}
	if diff := cmp.Diff(want, addresses(d)); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

func TestStatesOfDevices(t *testing.T) {
	for state, want := range map[string]struct{ changing, leaving bool }{
		"queued": {true, false}, "provisioning": {true, false}, "powering_off": {true, false}, "active": {}, "inactive": {}, "failed": {},
		"deprovisioning": {true, true}, "deleted": {false, true},
	} {
		if changing(state) != want.changing || leaving(state) != want.leaving {
			t.Errorf("%s: changing %t, leaving %t, want %+v", state, changing(state), leaving(state), want)
		}
	}
}

func TestRepeatedOrderKeepsTheLastFailure(t *testing.T) {
	failed := condition(metav1.ConditionFalse, infrav1.InsufficientCapacityReason, "Ordering a device failed: Full (HTTP 422)")
	waited := condition(metav1.ConditionFalse, infrav1.WaitingForBootstrapDataReason, "Waiting for the bootstrap data of the Machine")
	for name, tt := range map[string]struct {
		last   *metav1.Condition
		device string
		want   string
	}{
		"first order":           {nil, "", "Ordering a device"},
		"order after a wait":    {&waited, "", "Ordering a device"},
		"order after a failure": {&failed, "", failed.Message},
		"device after it":       {&failed, "d", `Provisioning device "d"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{machine: &infrav1.PacketMachine{}}
			if tt.last != nil {
				conditions.Set(s.machine, *tt.last)
			}
			s.started(tt.device)
			if got := conditions.Get(s.machine, infrav1.InstanceReady).Message; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
