package vip

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

func TestServed(t *testing.T) {
	held := infrav1.EndpointStatus{DeviceID: "d", Machine: "cp-1"}
	for name, tt := range map[string]struct {
		facts facts
		want  metav1.Condition
	}{
		"no machine":           {facts{}, metav1.Condition{Status: "False", Reason: infrav1.NoControlPlaneMachineReason, Message: "No control plane machine is active"}},
		"healthy":              {facts{endpoint: held, health: health{successes: 1}}, metav1.Condition{Status: "True", Reason: infrav1.EndpointHealthyReason, Message: `Machine "cp-1" holds the address`}},
		"not checked yet":      {facts{endpoint: held, initialized: true}, metav1.Condition{Status: "Unknown", Reason: infrav1.EndpointAssignedReason, Message: `Machine "cp-1" holds the address but has not answered yet`}},
		"one failure":          {facts{endpoint: held, health: health{failures: 1}, initialized: true}, metav1.Condition{Status: "Unknown", Reason: infrav1.EndpointAssignedReason, Message: `Machine "cp-1" holds the address but has not answered yet`}},
		"failures at the boot": {facts{endpoint: held, health: health{failures: 9}}, metav1.Condition{Status: "Unknown", Reason: infrav1.EndpointAssignedReason, Message: `Machine "cp-1" holds the address but has not answered yet`}},
		"failures afterwards": {
			facts{endpoint: held, health: health{failures: patience}, initialized: true},
			metav1.Condition{Status: "False", Reason: infrav1.EndpointUnhealthyReason, Message: `Machine "cp-1" holds the address but does not answer, and neither does any other control plane machine`},
		},
		"a move that failed": {
			facts{endpoint: held, health: health{successes: 1}, wait: &reconcile.Wait{Reason: infrav1.CredentialsInvalidReason, Message: "M"}},
			metav1.Condition{Status: "False", Reason: infrav1.APIUnavailableReason, Message: "M"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.want.Type = infrav1.EndpointServed
			if diff := cmp.Diff(tt.want, served(tt.facts)); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
