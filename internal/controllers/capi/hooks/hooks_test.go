package hooks

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

func machine(name string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestHooksAreServedInProcess(t *testing.T) {
	c := New()
	Serve(c, Hook[*runtimehooksv1.UpdateMachineRequest, *runtimehooksv1.UpdateMachineResponse]{
		Of:      runtimehooksv1.UpdateMachine,
		Applies: func(o client.Object) bool { return o.GetName() != "other" },
		Call: func(_ context.Context, request *runtimehooksv1.UpdateMachineRequest, response *runtimehooksv1.UpdateMachineResponse) error {
			if request.Desired.Machine.Name == "broken" {
				return errors.New("no disk")
			}
			response.SetMessage("upgraded " + request.Desired.Machine.Name)
			return nil
		},
	})
	for name, want := range map[string]int{"m": 1, "other": 0} {
		found, err := c.GetAllExtensions(t.Context(), runtimehooksv1.UpdateMachine, machine(name))
		if err != nil || len(found) != want {
			t.Errorf("%s: got %q, %v", name, found, err)
		}
	}
	request, response := &runtimehooksv1.UpdateMachineRequest{}, &runtimehooksv1.UpdateMachineResponse{}
	request.Desired.Machine = *machine("m")
	if err := c.CallAllExtensions(t.Context(), runtimehooksv1.UpdateMachine, machine("m"), request, response); err != nil || response.GetMessage() != "upgraded m" || response.GetStatus() != runtimehooksv1.ResponseStatusSuccess {
		t.Errorf("got %+v, %v", response, err)
	}
	request.Desired.Machine = *machine("broken")
	if err := c.CallExtension(t.Context(), runtimehooksv1.UpdateMachine, machine("m"), extension, request, response); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("got error %v", err)
	}
	if err := c.CallExtension(t.Context(), runtimehooksv1.UpdateMachine, machine("m"), extension, &runtimehooksv1.CanUpdateMachineRequest{}, response); err == nil {
		t.Error("a request of another hook was accepted")
	}
}

func TestOtherHooksHaveNoExtensions(t *testing.T) {
	c := New()
	found, err := c.GetAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, machine("m"))
	if err != nil || len(found) != 0 {
		t.Errorf("got %q, %v", found, err)
	}
	response := &runtimehooksv1.BeforeClusterUpgradeResponse{}
	if err := c.CallAllExtensions(t.Context(), runtimehooksv1.BeforeClusterUpgrade, machine("m"), &runtimehooksv1.BeforeClusterUpgradeRequest{}, response); err != nil || response.GetRetryAfterSeconds() != 0 {
		t.Errorf("got %+v, %v", response, err)
	}
	if err := c.CallExtension(t.Context(), runtimehooksv1.BeforeClusterUpgrade, machine("m"), "x", nil, response); err == nil {
		t.Error("an extension that does not exist was called")
	}
	if !c.IsReady() {
		t.Error("not ready")
	}
}
