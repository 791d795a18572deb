package admission

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

func createCluster(c *infrav1.PacketCluster) field.ErrorList {
	return clusterProblems(c.Spec, field.NewPath("spec"))
}

func updateCluster(was, is *infrav1.PacketCluster) field.ErrorList {
	if reflect.DeepEqual(was.Spec, is.Spec) {
		return nil
	}
	spec := field.NewPath("spec")
	problems := clusterProblems(is.Spec, spec)
	if was.Spec.ProjectID != is.Spec.ProjectID {
		problems = append(problems, field.Invalid(spec.Child("projectID"), is.Spec.ProjectID, "field is immutable"))
	}
	if was.Spec.VIPManager != is.Spec.VIPManager {
		problems = append(problems, field.Invalid(spec.Child("vipManager"), is.Spec.VIPManager, "field is immutable"))
	}
	return problems
}

func clusterProblems(s infrav1.PacketClusterSpec, path *field.Path) field.ErrorList {
	problems := oneLocation(s.Metro, s.Facility, path)
	if s.Metro == "" && s.Facility == "" {
		problems = append(problems, field.Required(path.Child("metro"), "set the metro of the devices"))
	}
	return append(problems, domainProblems(s, path.Child("failureDomains"))...)
}

// domainProblems rejects control plane machines in metros that the address can't move to.
func domainProblems(s infrav1.PacketClusterSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for i, d := range s.FailureDomains {
		if ptr.Deref(d.ControlPlane, false) && s.VIPManager != infrav1.VIPManagerEMLB && d.Metro != s.Metro {
			problems = append(problems, field.Invalid(path.Index(i).Child("controlPlane"), true,
				fmt.Sprintf("the address of the cluster is in metro %q and can't move to %q", s.Metro, d.Metro)))
		}
	}
	return problems
}

func oneLocation(metro, facility string, path *field.Path) field.ErrorList {
	if metro == "" || facility == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("facility"), facility, "set either metro or facility; metro is recommended")}
}

func warnCluster(c *infrav1.PacketCluster) admission.Warnings {
	var warnings admission.Warnings
	if c.Spec.Facility != "" {
		warnings = append(warnings, "spec.facility is deprecated: use spec.metro")
	}
	if c.Spec.VIPManager == infrav1.VIPManagerEMLB && !c.Spec.ControlPlaneEndpoint.IsValid() {
		warnings = append(warnings, "the load balancers of vipManager EMLB were shut down: set spec.controlPlaneEndpoint, or use vipManager CPEM")
	}
	return warnings
}

// createClusterTemplate accepts a template without the fields that patches of a ClusterClass fill
// in.
func createClusterTemplate(t *infrav1.PacketClusterTemplate) field.ErrorList {
	path := field.NewPath("spec", "template", "spec")
	problems := oneLocation(t.Spec.Template.Spec.Metro, t.Spec.Template.Spec.Facility, path)
	if !t.Spec.Template.Spec.ControlPlaneEndpoint.IsZero() && t.Spec.Template.Spec.VIPManager != infrav1.VIPManagerEMLB {
		problems = append(problems, field.Forbidden(path.Child("controlPlaneEndpoint"), "clusters of one template can't share an endpoint"))
	}
	return append(problems, t.Spec.Template.ObjectMeta.Validate(field.NewPath("spec", "template", "metadata"))...)
}

func updateClusterTemplate(was, is *infrav1.PacketClusterTemplate) field.ErrorList {
	if reflect.DeepEqual(was.Spec.Template.Spec, is.Spec.Template.Spec) {
		return nil
	}
	return field.ErrorList{immutable("PacketClusterTemplate")}
}

func immutable(kind string) *field.Error {
	return field.Forbidden(field.NewPath("spec", "template", "spec"), kind+" is immutable: create a new one and refer to it")
}
