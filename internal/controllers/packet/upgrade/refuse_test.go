package upgrade

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/drover-dev/drover/internal/model/inplace"
)

func object(spec map[string]any) runtime.RawExtension {
	return runtime.RawExtension{Object: &unstructured.Unstructured{Object: map[string]any{"kind": "K", "spec": spec}}}
}

func TestControlPlaneMachinesAreUpdatedOrRefused(t *testing.T) {
	in := func(version, content, plan string) runtimehooksv1.CanUpdateMachineRequestObjects {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1.MachineSpec{Version: version}}
		return runtimehooksv1.CanUpdateMachineRequestObjects{
			Machine: m, BootstrapConfig: object(map[string]any{"files": []any{content}}), InfrastructureMachine: object(map[string]any{"machineType": plan, "providerID": version}),
		}
	}
	gated := func(o runtimehooksv1.CanUpdateMachineRequestObjects, gate string) runtimehooksv1.CanUpdateMachineRequestObjects {
		o.BootstrapConfig = object(map[string]any{"files": []any{"a"}, "clusterConfiguration": map[string]any{"featureGates": map[string]any{gate: true}}})
		return o
	}
	for name, tt := range map[string]struct {
		desired runtimehooksv1.CanUpdateMachineRequestObjects
		want    string
	}{
		"a version":             {in("v1.36.3", "a", "small"), ""},
		"the gate of a version": {gated(in("v1.36.3", "a", "small"), versionedGate), ""},
		"another gate":          {gated(in("v1.36.3", "a", "small"), "Other"), "clusterConfiguration.featureGates"},
		"a file":                {in("v1.36.3", "b", "small"), "kubeadm configuration changes (files)"},
		"another machine":       {in("v1.35.4", "a", "large"), "machine changes (machineType)"},
	} {
		t.Run(name, func(t *testing.T) {
			events := record.NewFakeRecorder(1)
			u, out := &Upgrader{Events: events}, &runtimehooksv1.CanUpdateMachineResponse{}
			err := u.CanUpdateMachine(t.Context(), &runtimehooksv1.CanUpdateMachineRequest{Current: in("v1.35.4", "a", "small"), Desired: tt.desired}, out)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) || len(events.Events) != 1 {
					t.Errorf("got %v and %d events", err, len(events.Events))
				}
				return
			}
			if err != nil || string(out.MachinePatch.Patch) != `{"spec":{"version":"v1.36.3"}}` || !strings.Contains(string(out.BootstrapConfigPatch.Patch), `"/spec"`) {
				t.Errorf("got %v, %s, %s", err, out.MachinePatch.Patch, out.BootstrapConfigPatch.Patch)
			}
		})
	}
}

func TestWorkersAreUpdatedOrRefused(t *testing.T) {
	in := func(version, content string) runtimehooksv1.CanUpdateMachineSetRequestObjects {
		set := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		set.Spec.Template.Spec.Version = version
		template := func(spec map[string]any) runtime.RawExtension {
			raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
			if err != nil {
				t.Fatal(err)
			}
			return runtime.RawExtension{Raw: raw}
		}
		return runtimehooksv1.CanUpdateMachineSetRequestObjects{
			MachineSet: set, BootstrapConfigTemplate: template(map[string]any{"files": []any{content}}), InfrastructureMachineTemplate: template(map[string]any{"machineType": "small"}),
		}
	}
	u := &Upgrader{Events: record.NewFakeRecorder(2)}
	request, out := &runtimehooksv1.CanUpdateMachineSetRequest{Current: in("v1.35.4", "a"), Desired: in("v1.36.3", "a")}, &runtimehooksv1.CanUpdateMachineSetResponse{}
	if err := u.CanUpdateMachineSet(t.Context(), request, out); err != nil || string(out.MachineSetPatch.Patch) != `{"spec":{"template":{"spec":{"version":"v1.36.3"}}}}` {
		t.Errorf("got %v, %s", err, out.MachineSetPatch.Patch)
	}
	request.Desired = in("v1.36.3", "b")
	if err := u.CanUpdateMachineSet(t.Context(), request, out); err == nil || !strings.Contains(err.Error(), "files") {
		t.Errorf("got %v", err)
	}
}

func TestHooksApplyToMarkedMachines(t *testing.T) {
	marked := map[string]string{inplace.Annotation: inplace.Strategy}
	set := &clusterv1.MachineSet{}
	set.Spec.Template.Annotations = marked
	if !applies(set) || applies(&clusterv1.MachineSet{}) || applies(&clusterv1.Machine{}) || !applies(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: marked}}) {
		t.Error("the wrong objects")
	}
}
