package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// updateCase is the old Cluster as a change of a valid one, and the new Cluster as a change of the
// old one.
type updateCase struct {
	Name string         `json:"name"`
	Base string         `json:"base"`
	Old  map[string]any `json:"old"`
	New  map[string]any `json:"new"`
	Want []string       `json:"want"`
}

func TestValidateUpdateReportsEveryProblem(t *testing.T) {
	for _, test := range table[updateCase](t, "update") {
		t.Run(test.Name, func(t *testing.T) {
			was := cluster(t, test.Base, test.Old)
			is := cluster(t, test.Base, test.Old, test.New)
			if reason, ok := was.Annotations["test/failure"]; ok {
				was.Status.FailureReason = ptr.To(anywherev1.FailureReason(reason))
			}
			before, after := was.DeepCopy(), is.DeepCopy()
			problems := spec.ValidateUpdate(was, is)
			if diff := cmp.Diff(test.Want, lines(problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			complete(t, problems)
			if diff := cmp.Diff([]*anywherev1.Cluster{before, after}, []*anywherev1.Cluster{was, is}); diff != "" {
				t.Errorf("the clusters were changed:\n%s", diff)
			}
		})
	}
}

func TestValidateCreate(t *testing.T) {
	encrypted := map[string]any{"spec": map[string]any{"etcdEncryption": []any{map[string]any{"resources": []any{"secrets"}, "providers": []any{}}}}}
	annotated := func(key string) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: "true"}}}
	}
	with := func(a, b map[string]any) map[string]any { return merge(copied(t, a), b).(map[string]any) }
	const selfManaged = "spec.managementCluster.name: creating new cluster on existing cluster is not supported for self managed clusters " +
		"(name the management cluster, or set management: false; create management clusters with `drover create cluster`)"
	const encryption = "spec.etcdEncryption: etcdEncryption is not supported during cluster creation " +
		"(create the cluster without it, run the plugin on its control planes, then add it)"
	for name, test := range map[string]struct {
		change map[string]any
		want   []string
	}{
		"a management cluster":                      {nil, []string{selfManaged}},
		"a management cluster that a command makes": {annotated(anywherev1.ManagedByCLIAnnotation), nil},
		"a management cluster that is paused":       {annotated(anywherev1.PausedAnnotation), nil},
		"a workload cluster":                        {map[string]any{"spec": map[string]any{"managementCluster": map[string]any{"name": "other"}}}, nil},
		"a workload cluster by the flag":            {map[string]any{"spec": map[string]any{"management": false, "managementCluster": nil}}, nil},
		"a management cluster with encryption":      {encrypted, []string{selfManaged, encryption}},
		"one with its own key": {with(map[string]any{"spec": map[string]any{"etcdEncryption": []any{
			map[string]any{"resources": []any{"secrets"}, "providers": []any{map[string]any{"secretbox": map[string]any{}}}},
		}}}, annotated(anywherev1.ManagedByCLIAnnotation)), nil},
		"one with encryption that a command makes":     {with(encrypted, annotated(anywherev1.ManagedByCLIAnnotation)), []string{encryption}},
		"one with encryption that is moved while idle": {with(encrypted, annotated(anywherev1.PausedAnnotation)), nil},
	} {
		if diff := cmp.Diff(test.want, lines(spec.ValidateCreate(cluster(t, "docker", test.change)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestKeepOrder(t *testing.T) {
	proxied := func(noProxy ...string) *anywherev1.Cluster {
		return &anywherev1.Cluster{Spec: anywherev1.ClusterSpec{ProxyConfiguration: &anywherev1.ProxyConfiguration{NoProxy: noProxy}}}
	}
	for _, test := range []struct{ was, is, want *anywherev1.Cluster }{
		{proxied("b", "a"), proxied("a", "b"), proxied("b", "a")},
		{proxied("b", "a"), proxied("a", "c"), proxied("a", "c")},
		{proxied("b", "a"), proxied("a", "b", "a"), proxied("a", "b", "a")},
		{&anywherev1.Cluster{}, proxied("a"), proxied("a")},
		{proxied("a"), &anywherev1.Cluster{}, &anywherev1.Cluster{}},
	} {
		is := test.is.DeepCopy()
		spec.KeepOrder(test.was, is)
		if diff := cmp.Diff(test.want, is); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.is.Spec.ProxyConfiguration, diff)
		}
	}
}

func TestValidateObjectUpdate(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "a"}
	workload := metav1.ObjectMeta{Name: "a", Annotations: map[string]string{anywherev1.ManagedByAnnotation: "mgmt"}}
	paused := metav1.ObjectMeta{Name: "a", Annotations: map[string]string{anywherev1.PausedAnnotation: "true"}}
	packet := func(meta metav1.ObjectMeta, metro, secret string) client.Object {
		return &anywherev1.PacketDatacenterConfig{ObjectMeta: meta, Spec: anywherev1.PacketDatacenterConfigSpec{Metro: metro, CredentialsRef: &anywherev1.CredentialsRef{Name: secret}}}
	}
	oidc := func(meta metav1.ObjectMeta, id string) client.Object {
		return &anywherev1.OIDCConfig{ObjectMeta: meta, Spec: anywherev1.OIDCConfigSpec{ClientID: id}}
	}
	flux := func(branch string) client.Object {
		return &anywherev1.FluxConfig{ObjectMeta: meta, Spec: anywherev1.FluxConfigSpec{Branch: branch}}
	}
	gitOps := func(branch string) client.Object {
		return &anywherev1.GitOpsConfig{ObjectMeta: meta, Spec: anywherev1.GitOpsConfigSpec{Flux: anywherev1.Flux{Github: anywherev1.Github{Branch: branch}}}}
	}
	machine := func(os string) client.Object {
		return &anywherev1.PacketMachineConfig{ObjectMeta: meta, Spec: anywherev1.PacketMachineConfigSpec{OS: os}}
	}
	for name, test := range map[string]struct {
		old, new client.Object
		want     string
	}{
		"another metro":                     {packet(meta, "da", "x"), packet(meta, "sv", "x"), "PacketDatacenterConfig/a: spec: field is immutable"},
		"another metro while paused":        {packet(paused, "da", "x"), packet(meta, "sv", "x"), ""},
		"other credentials":                 {packet(meta, "da", "x"), packet(meta, "da", "other"), ""},
		"another branch":                    {flux("main"), flux("dev"), "FluxConfig/a: spec: field is immutable"},
		"another branch in the older form":  {gitOps("main"), gitOps("dev"), "GitOpsConfig/a: spec: field is immutable"},
		"the same branch":                   {flux("main"), flux("main"), ""},
		"another issuer of management":      {oidc(meta, "a"), oidc(meta, "b"), "OIDCConfig/a: spec: field is immutable"},
		"another issuer of workload":        {oidc(workload, "a"), oidc(workload, "b"), ""},
		"another operating system":          {machine("ubuntu_24_04"), machine("ubuntu_26_04"), ""},
		"nothing to change on this machine": {&anywherev1.DockerDatacenterConfig{}, &anywherev1.DockerDatacenterConfig{}, ""},
	} {
		problems := spec.ValidateObjectUpdate(test.old, test.new)
		got := ""
		if len(problems) > 0 {
			got = problems[0].Path + ": " + problems[0].Problem
		}
		if got != test.want || len(problems) > 1 {
			t.Errorf("%s: got %q, want %q", name, problems, test.want)
		}
		complete(t, problems)
	}
}

func TestGitOpsRefChangesOnlyToItsNewerForm(t *testing.T) {
	ref := func(kind, name string) *anywherev1.Ref { return &anywherev1.Ref{Kind: kind, Name: name} }
	for name, test := range map[string]struct {
		old, new *anywherev1.Ref
		allowed  bool
	}{
		"enabled":           {nil, ref("FluxConfig", "a"), true},
		"disabled":          {ref("FluxConfig", "a"), nil, false},
		"another name":      {ref("FluxConfig", "a"), ref("FluxConfig", "b"), false},
		"the newer form":    {ref("GitOpsConfig", "a"), ref("FluxConfig", "a"), true},
		"newer and another": {ref("GitOpsConfig", "a"), ref("FluxConfig", "b"), false},
		"the older form":    {ref("FluxConfig", "a"), ref("GitOpsConfig", "a"), false},
	} {
		was, is := &anywherev1.Cluster{}, &anywherev1.Cluster{}
		was.Spec.GitOpsRef, is.Spec.GitOpsRef = test.old, test.new
		text := spec.ValidateUpdate(was, is).Error()
		if got := !strings.Contains(text, "spec.gitOpsRef"); got != test.allowed {
			t.Errorf("%s: %q, want allowed %t", name, text, test.allowed)
		}
	}
}
