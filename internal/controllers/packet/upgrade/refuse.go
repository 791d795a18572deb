package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/drover-dev/drover/internal/model/inplace"
)

// refusedReason is the reason of the event about a change that can't be made in place.
const refusedReason = "InPlaceUpgradeRefused"

// CanUpdateMachine accepts a new version of a control plane machine. Any other change is an error,
// which stops the rollout: without an error, Cluster API would replace the machine.
func (u *Upgrader) CanUpdateMachine(_ context.Context, in *runtimehooksv1.CanUpdateMachineRequest, out *runtimehooksv1.CanUpdateMachineResponse) error {
	current, err := machineOf(in.Current.Machine.Spec, in.Current.BootstrapConfig, in.Current.InfrastructureMachine, "spec")
	if err != nil {
		return err
	}
	desired, err := machineOf(in.Desired.Machine.Spec, in.Desired.BootstrapConfig, in.Desired.InfrastructureMachine, "spec")
	if err != nil {
		return err
	}
	if err := u.refuse(&in.Current.Machine, current, desired); err != nil {
		return err
	}
	if out.MachinePatch, err = versionPatch(desired.Version, "spec"); err != nil {
		return err
	}
	out.BootstrapConfigPatch, err = specPatch(in.Desired.BootstrapConfig)
	return err
}

// CanUpdateMachineSet is CanUpdateMachine for a group of workers.
func (u *Upgrader) CanUpdateMachineSet(_ context.Context, in *runtimehooksv1.CanUpdateMachineSetRequest, out *runtimehooksv1.CanUpdateMachineSetResponse) error {
	path := []string{"spec", "template", "spec"}
	current, err := machineOf(in.Current.MachineSet.Spec.Template.Spec, in.Current.BootstrapConfigTemplate, in.Current.InfrastructureMachineTemplate, path...)
	if err != nil {
		return err
	}
	desired, err := machineOf(in.Desired.MachineSet.Spec.Template.Spec, in.Desired.BootstrapConfigTemplate, in.Desired.InfrastructureMachineTemplate, path...)
	if err != nil {
		return err
	}
	if err := u.refuse(&in.Current.MachineSet, current, desired); err != nil {
		return err
	}
	out.MachineSetPatch, err = versionPatch(desired.Version, path...)
	return err
}

func (u *Upgrader) refuse(o client.Object, current, desired inplace.Machine) error {
	reasons := inplace.Refusals(current, desired)
	if len(reasons) == 0 {
		return nil
	}
	err := fmt.Errorf("upgrading %s %q in place is impossible: %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), strings.Join(reasons, "; "))
	u.Events.Event(o, corev1.EventTypeWarning, refusedReason, err.Error())
	return err
}

// machineOf reads a machine, or the template of one, whose specs are at a path.
func machineOf(spec clusterv1.MachineSpec, bootstrap, infrastructure runtime.RawExtension, path ...string) (inplace.Machine, error) {
	out := inplace.Machine{Version: spec.Version}
	var err error
	if out.Bootstrap, err = specOf(bootstrap, path); err != nil {
		return out, fmt.Errorf("reading a bootstrap configuration: %w", err)
	}
	if out.Infrastructure, err = specOf(infrastructure, path); err != nil {
		return out, fmt.Errorf("reading an infrastructure machine: %w", err)
	}
	delete(out.Infrastructure, "providerID")
	withoutVersionedGate(out.Bootstrap)
	// What else a rollout of Cluster API depends on.
	if spec.FailureDomain != "" {
		if out.Infrastructure == nil {
			out.Infrastructure = map[string]any{}
		}
		out.Infrastructure["failureDomain"] = spec.FailureDomain
	}
	return out, nil
}

// versionedGate is the feature gate that Cluster API's control plane provider sets for some
// versions of Kubernetes by itself, also in the configuration of the cluster. It concerns machines
// that join.
const versionedGate = "ControlPlaneKubeletLocalMode"

func withoutVersionedGate(bootstrap map[string]any) {
	cluster, _ := bootstrap["clusterConfiguration"].(map[string]any)
	gates, _ := cluster["featureGates"].(map[string]any)
	delete(gates, versionedGate)
}

// specOf returns the map at a path of an object, by a round trip that also makes numbers equal.
func specOf(raw runtime.RawExtension, path []string) (map[string]any, error) {
	data := raw.Raw
	if raw.Object != nil {
		var err error
		if data, err = json.Marshal(raw.Object); err != nil {
			return nil, err
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	var at map[string]any
	if err := json.Unmarshal(data, &at); err != nil {
		return nil, err
	}
	for _, key := range path {
		below, _ := at[key].(map[string]any)
		at = below
	}
	return at, nil
}

// specPatch replaces the spec of an object with that of another one, which differs in nothing that
// matters.
func specPatch(desired runtime.RawExtension) (runtimehooksv1.Patch, error) {
	spec, err := specOf(desired, []string{"spec"})
	if err != nil || spec == nil {
		return runtimehooksv1.Patch{}, err
	}
	data, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": spec}})
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONPatchType, Patch: data}, err
}

// versionPatch sets the version in the machine spec at a path.
func versionPatch(version string, path ...string) (runtimehooksv1.Patch, error) {
	var patch any = map[string]any{"version": version}
	for i := len(path) - 1; i >= 0; i-- {
		patch = map[string]any{path[i]: patch}
	}
	data, err := json.Marshal(patch)
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: data}, err
}
