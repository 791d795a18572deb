package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
	"github.com/drover-dev/drover/internal/model/inplace"
)

// checkInPlace stops before anything is applied if machines that are upgraded in place would have
// to be replaced.
func (c *Controller) checkInPlace(_ context.Context, s *scope) error {
	wanted, err := finally(s)
	if err != nil {
		return err
	}
	refusals := controlPlaneRefusals(&s.live, wanted)
	what := "the control plane"
	for i := 0; len(refusals) == 0 && i < len(wanted.Workers); i++ {
		refusals, what = workerRefusals(&s.live, wanted, wanted.Workers[i]), "workers "+wanted.Workers[i].Labels[build.GroupLabel]
	}
	if len(refusals) == 0 {
		return nil
	}
	return fail(anywherev1.InPlaceUpgradeImpossibleReason, "Machines of %s can't be upgraded in place: %s; revert the change, or set upgradeRolloutStrategy.type to RollingUpdate to replace them",
		what, strings.Join(refusals, "; "))
}

// finally returns the wanted objects as they are when nothing waits for add-ons or for the control
// plane any more.
func finally(s *scope) (*build.Set, error) {
	if len(s.wanted.Held) == 0 && !s.input.HoldMachines && !s.input.HoldWorkers {
		return s.wanted, nil
	}
	in, now := s.input, *s.input.Now
	in.HoldMachines, in.HoldWorkers, in.KubernetesVersion = false, false, ""
	if now.ControlPlane != nil {
		now.ControlPlane = now.ControlPlane.DeepCopy()
		now.ControlPlane.Status.Version = ""
	}
	in.Now = &now
	return build.Objects(in)
}

// controlPlaneRefusals returns why control plane machines can't become the wanted ones in place.
func controlPlaneRefusals(have *live, wanted *build.Set) []string {
	is, want := have.controlPlane, wanted.ControlPlane
	if is == nil || want == nil || !inplace.Wanted(want.Spec.MachineTemplate.ObjectMeta.Annotations) {
		return nil
	}
	current, desired := inplace.Machine{Version: is.Spec.Version}, inplace.Machine{Version: want.Spec.Version}
	current.Bootstrap, desired.Bootstrap = configs(is, want)
	current.Infrastructure, desired.Infrastructure = have.machinesChange(wanted, is.Spec.MachineTemplate.Spec.InfrastructureRef.Name, want.Spec.MachineTemplate.Spec.InfrastructureRef.Name)
	if oldest := cmp.Or(is.Status.Version, is.Spec.Version); inplace.VersionRefusal(current.Version, desired.Version) == "" {
		current.Version = oldest // Machines may still have the version before.
	}
	return inplace.Refusals(current, desired)
}

// configs returns the kubeadm configurations of a control plane. The API server has added defaults
// to the existing one, so what covers the wanted one equals it; a digest finds removed fields.
func configs(is, want *controlplanev1.KubeadmControlPlane) (current, desired map[string]any) {
	have, err := asMap(is.Spec.KubeadmConfigSpec)
	desired, err2 := asMap(want.Spec.KubeadmConfigSpec)
	digest := is.Annotations[build.ConfigAnnotation]
	same := digest == want.Annotations[build.ConfigAnnotation]
	switch {
	case err != nil || err2 != nil:
		return nil, map[string]any{"unreadable": true}
	case same || digest == "" && covers(have, desired):
		return nil, nil
	}
	current = withoutDefaults(have, desired)
	if len(inplace.Differences(current, desired)) == 0 {
		return nil, map[string]any{"a field is removed": true}
	}
	return current, desired
}

// withoutDefaults returns what there is, with the wanted value where it only adds defaults.
func withoutDefaults(have, want map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range want {
		below, one := have[key].(map[string]any)
		wanted, two := value.(map[string]any)
		switch {
		case covers(have[key], value):
			out[key] = value
		case one && two:
			out[key] = withoutDefaults(below, wanted)
		default:
			out[key] = have[key]
		}
	}
	return out
}

// workerRefusals returns why the machines of a group can't become the wanted ones in place.
func workerRefusals(have *live, wanted *build.Set, want *clusterv1.MachineDeployment) []string {
	i := slices.IndexFunc(have.workers, func(d *clusterv1.MachineDeployment) bool { return d.Name == want.Name })
	if i < 0 || !inplace.Wanted(want.Spec.Template.Annotations) {
		return nil
	}
	is, to := build.MachineryOf(have.workers[i].Spec.Template.Spec), build.MachineryOf(want.Spec.Template.Spec)
	current, desired := inplace.Machine{Version: is.Version}, inplace.Machine{Version: to.Version}
	current.Infrastructure, desired.Infrastructure = have.machinesChange(wanted, is.Machines, to.Machines)
	current.Bootstrap, desired.Bootstrap = change(is.Bootstrap, to.Bootstrap, have.bootstraps, wanted.Bootstraps)
	return inplace.Refusals(current, desired)
}

func (l *live) machinesChange(wanted *build.Set, from, to string) (current, desired map[string]any) {
	return change(from, to, l.templates, wanted.Machines)
}

// change returns the specs of two templates. Templates of the same name are the same.
func change[T client.Object](from, to string, have, wanted []T) (current, desired map[string]any) {
	if from == to {
		return nil, nil
	}
	current, desired = templateSpec(from, have), templateSpec(to, wanted)
	if len(inplace.Differences(current, desired)) == 0 {
		return nil, map[string]any{fmt.Sprintf("template %s", to): true}
	}
	return current, desired
}

// templateSpec returns the spec of the machines of a template, or nil if there is no such template.
func templateSpec[T client.Object](name string, all []T) map[string]any {
	for _, o := range all {
		if o.GetName() != name {
			continue
		}
		content, err := asMap(o)
		for _, key := range []string{"spec", "template", "spec"} {
			if err != nil {
				return nil
			}
			content, _ = content[key].(map[string]any)
		}
		return content
	}
	return nil
}
