package admission

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// customIPXE is the operating system that boots from the user's iPXE script.
const customIPXE = "custom_ipxe"

func createMachine(m *infrav1.PacketMachine) field.ErrorList {
	return machineProblems(m.Spec, field.NewPath("spec"))
}

// updateMachine allows changes of what Drover sets, and of what never affects an existing device.
func updateMachine(was, is *infrav1.PacketMachine) field.ErrorList {
	if reflect.DeepEqual(was.Spec, is.Spec) {
		return nil
	}
	spec := field.NewPath("spec")
	problems := oneLocation(is.Spec.Metro, is.Spec.Facility, spec)
	if !reflect.DeepEqual(fixed(was.Spec), fixed(is.Spec)) {
		problems = append(problems, field.Forbidden(spec, "is immutable except for providerID, tags, facility and metro: create a new Machine"))
	}
	return problems
}

// fixed returns the immutable part of a spec.
func fixed(s infrav1.PacketMachineSpec) infrav1.PacketMachineSpec {
	s.ProviderID, s.Tags, s.Facility, s.Metro = nil, nil, "", ""
	return s
}

func machineProblems(s infrav1.PacketMachineSpec, path *field.Path) field.ErrorList {
	problems := oneLocation(s.Metro, s.Facility, path)
	if s.IPXEUrl != "" && s.OS != customIPXE {
		problems = append(problems, field.Invalid(path.Child("ipxeURL"), s.IPXEUrl, "requires os to be "+customIPXE))
	}
	return problems
}

func createMachineTemplate(t *infrav1.PacketMachineTemplate) field.ErrorList {
	path := field.NewPath("spec", "template", "spec")
	problems := machineProblems(t.Spec.Template.Spec, path)
	if t.Spec.Template.Spec.ProviderID != nil {
		problems = append(problems, field.Forbidden(path.Child("providerID"), "machines of one template can't share a device"))
	}
	return append(problems, t.Spec.Template.ObjectMeta.Validate(field.NewPath("spec", "template", "metadata"))...)
}

func updateMachineTemplate(was, is *infrav1.PacketMachineTemplate) field.ErrorList {
	if reflect.DeepEqual(was.Spec.Template.Spec, is.Spec.Template.Spec) {
		return nil
	}
	return field.ErrorList{immutable("PacketMachineTemplate")}
}

func warnMachineTemplate(t *infrav1.PacketMachineTemplate) admission.Warnings {
	if t.Spec.Template.Spec.Facility == "" {
		return nil
	}
	return admission.Warnings{"spec.template.spec.facility is deprecated: use metro"}
}
