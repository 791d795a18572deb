package admission

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
)

// paths returns the fields with problems.
func paths(problems field.ErrorList) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Field)
	}
	return out
}

func TestCreateCluster(t *testing.T) {
	for name, tt := range map[string]struct {
		spec infrav1.PacketClusterSpec
		want []string
	}{
		"a metro":                          {infrav1.PacketClusterSpec{Metro: "da"}, nil},
		"a facility":                       {infrav1.PacketClusterSpec{Facility: "da11"}, nil},
		"both":                             {infrav1.PacketClusterSpec{Metro: "da", Facility: "da11"}, []string{"spec.facility"}},
		"neither":                          {infrav1.PacketClusterSpec{}, []string{"spec.metro"}},
		"workers in another metro":         {infrav1.PacketClusterSpec{Metro: "da", FailureDomains: []infrav1.PacketFailureDomain{{Metro: "ny"}}}, nil},
		"a control plane in another metro": {infrav1.PacketClusterSpec{Metro: "da", FailureDomains: []infrav1.PacketFailureDomain{{Metro: "da", ControlPlane: ptr.To(true)}, {Metro: "ny", ControlPlane: ptr.To(true)}}}, []string{"spec.failureDomains[1].controlPlane"}},
		"the same with a load balancer":    {infrav1.PacketClusterSpec{Metro: "da", VIPManager: infrav1.VIPManagerEMLB, FailureDomains: []infrav1.PacketFailureDomain{{Metro: "ny", ControlPlane: ptr.To(true)}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, paths(createCluster(&infrav1.PacketCluster{Spec: tt.spec}))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUpdateCluster(t *testing.T) {
	base := infrav1.PacketClusterSpec{ProjectID: "p", Metro: "da", VIPManager: infrav1.VIPManagerCPEM}
	for name, tt := range map[string]struct {
		was    infrav1.PacketClusterSpec
		change func(*infrav1.PacketClusterSpec)
		want   []string
	}{
		"the endpoint":                         {base, func(s *infrav1.PacketClusterSpec) { s.ControlPlaneEndpoint.Host = "192.0.2.1" }, nil},
		"the project":                          {base, func(s *infrav1.PacketClusterSpec) { s.ProjectID = "q" }, []string{"spec.projectID"}},
		"the VIP manager":                      {base, func(s *infrav1.PacketClusterSpec) { s.VIPManager = infrav1.VIPManagerKubeVIP }, []string{"spec.vipManager"}},
		"the metro to none":                    {base, func(s *infrav1.PacketClusterSpec) { s.Metro = "" }, []string{"spec.metro"}},
		"nothing in a spec that is invalid":    {infrav1.PacketClusterSpec{}, func(*infrav1.PacketClusterSpec) {}, nil},
		"something in a spec that was invalid": {infrav1.PacketClusterSpec{}, func(s *infrav1.PacketClusterSpec) { s.APIURL = "http://x" }, []string{"spec.metro"}},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := &infrav1.PacketCluster{Spec: tt.was}, &infrav1.PacketCluster{Spec: tt.was}
			tt.change(&is.Spec)
			if diff := cmp.Diff(tt.want, paths(updateCluster(was, is))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterTemplate(t *testing.T) {
	template := func(s infrav1.PacketClusterSpec) *infrav1.PacketClusterTemplate {
		out := &infrav1.PacketClusterTemplate{}
		out.Spec.Template.Spec = s
		return out
	}
	endpoint := infrav1.APIEndpoint{Host: "192.0.2.1", Port: 6443}
	for name, tt := range map[string]struct {
		spec infrav1.PacketClusterSpec
		want []string
	}{
		"without a location, which patches add":  {infrav1.PacketClusterSpec{}, nil},
		"two locations":                          {infrav1.PacketClusterSpec{Metro: "da", Facility: "da11"}, []string{"spec.template.spec.facility"}},
		"an endpoint for all clusters":           {infrav1.PacketClusterSpec{ControlPlaneEndpoint: endpoint}, []string{"spec.template.spec.controlPlaneEndpoint"}},
		"an endpoint that the user has to share": {infrav1.PacketClusterSpec{ControlPlaneEndpoint: endpoint, VIPManager: infrav1.VIPManagerEMLB}, nil},
	} {
		if diff := cmp.Diff(tt.want, paths(createClusterTemplate(template(tt.spec)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	was, is := template(infrav1.PacketClusterSpec{Metro: "da"}), template(infrav1.PacketClusterSpec{Metro: "ny"})
	if got := paths(updateClusterTemplate(was, is)); !cmp.Equal(got, []string{"spec.template.spec"}) {
		t.Errorf("a changed template: %v", got)
	}
	if got := updateClusterTemplate(was, was.DeepCopy()); got != nil {
		t.Errorf("an unchanged template: %v", got)
	}
}

func TestMachine(t *testing.T) {
	base := infrav1.PacketMachineSpec{OS: "ubuntu_24_04", MachineType: "c3.small.x86"}
	with := func(change func(*infrav1.PacketMachineSpec)) *infrav1.PacketMachine {
		m := &infrav1.PacketMachine{Spec: base}
		change(&m.Spec)
		return m
	}
	for name, tt := range map[string]struct {
		machine        *infrav1.PacketMachine
		create, update []string
	}{
		"nothing":                       {with(func(*infrav1.PacketMachineSpec) {}), nil, nil},
		"what Drover sets":              {with(func(s *infrav1.PacketMachineSpec) { s.ProviderID = ptr.To("equinixmetal://d") }), nil, nil},
		"tags and a metro":              {with(func(s *infrav1.PacketMachineSpec) { s.Tags, s.Metro = []string{"a"}, "da" }), nil, nil},
		"two locations":                 {with(func(s *infrav1.PacketMachineSpec) { s.Metro, s.Facility = "da", "da11" }), []string{"spec.facility"}, []string{"spec.facility"}},
		"another machine type":          {with(func(s *infrav1.PacketMachineSpec) { s.MachineType = "m3.small.x86" }), nil, []string{"spec"}},
		"iPXE with an image":            {with(func(s *infrav1.PacketMachineSpec) { s.IPXEUrl = "http://x" }), []string{"spec.ipxeURL"}, []string{"spec"}},
		"iPXE with an operating system": {with(func(s *infrav1.PacketMachineSpec) { s.IPXEUrl, s.OS = "http://x", customIPXE }), nil, []string{"spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.create, paths(createMachine(tt.machine))); diff != "" {
				t.Errorf("create (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.update, paths(updateMachine(&infrav1.PacketMachine{Spec: base}, tt.machine))); diff != "" {
				t.Errorf("update (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineTemplate(t *testing.T) {
	template := &infrav1.PacketMachineTemplate{}
	template.Spec.Template.Spec.ProviderID = ptr.To("equinixmetal://d")
	template.Spec.Template.Spec.Facility = "da11"
	if got := paths(createMachineTemplate(template)); !cmp.Equal(got, []string{"spec.template.spec.providerID"}) {
		t.Errorf("create: %v", got)
	}
	if got := warnMachineTemplate(template); len(got) != 1 || !strings.Contains(got[0], "deprecated") {
		t.Errorf("warnings %v", got)
	}
	changed := template.DeepCopy()
	changed.Spec.Template.Spec.OS = "other"
	if got := paths(updateMachineTemplate(template, changed)); !cmp.Equal(got, []string{"spec.template.spec"}) {
		t.Errorf("update: %v", got)
	}
	relabeled := template.DeepCopy()
	relabeled.Labels = map[string]string{"a": "b"}
	if got := updateMachineTemplate(template, relabeled); got != nil {
		t.Errorf("a new label: %v", got)
	}
}

func TestClusterWarnings(t *testing.T) {
	for name, tt := range map[string]struct {
		spec infrav1.PacketClusterSpec
		want []string
	}{
		"a metro":                     {infrav1.PacketClusterSpec{Metro: "da"}, nil},
		"a facility":                  {infrav1.PacketClusterSpec{Facility: "da11"}, []string{"spec.facility is deprecated"}},
		"EMLB without an endpoint":    {infrav1.PacketClusterSpec{VIPManager: infrav1.VIPManagerEMLB}, []string{"vipManager EMLB"}},
		"EMLB with your own balancer": {infrav1.PacketClusterSpec{VIPManager: infrav1.VIPManagerEMLB, ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "192.0.2.1", Port: 6443}}, nil},
	} {
		got := warnCluster(&infrav1.PacketCluster{Spec: tt.spec})
		if len(got) != len(tt.want) || len(got) > 0 && !strings.Contains(got[0], tt.want[0]) {
			t.Errorf("%s: warnings %v, want %v", name, got, tt.want)
		}
	}
}

func TestValidatorRejectsWithTheKindAndAllProblems(t *testing.T) {
	v := validator[*infrav1.PacketCluster]{"PacketCluster", createCluster, updateCluster, warnCluster}
	bad := &infrav1.PacketCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: infrav1.PacketClusterSpec{Facility: "da11", Metro: "da"}}
	warnings, err := v.ValidateCreate(context.Background(), bad)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `PacketCluster.infrastructure.cluster.x-k8s.io "c" is invalid: spec.facility`) {
		t.Errorf("got error %v, want one that contains %q", err, `PacketCluster.infrastructure.cluster.x-k8s.io "c" is invalid: spec.facility`)
	}
	if len(warnings) != 1 {
		t.Errorf("warnings %v", warnings)
	}
	good := &infrav1.PacketCluster{Spec: infrav1.PacketClusterSpec{Metro: "da"}}
	if _, err := v.ValidateUpdate(context.Background(), good, good.DeepCopy()); err != nil {
		t.Errorf("an unchanged object: %v", err)
	}
	if _, err := v.ValidateDelete(context.Background(), bad); err != nil {
		t.Errorf("deleting an invalid object: %v", err)
	}
	v.warn = nil
	if warnings, _ := v.ValidateCreate(context.Background(), bad); warnings != nil {
		t.Errorf("warnings %v without a rule for them", warnings)
	}
}
