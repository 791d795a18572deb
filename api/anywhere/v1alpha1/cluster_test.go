package v1alpha1

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestManagedBy(t *testing.T) {
	for name, test := range map[string]struct {
		management *bool
		named      string
		self       bool
		by         string
	}{
		"unset":                         {nil, "", true, "a"},
		"names itself":                  {nil, "a", true, "a"},
		"names another":                 {nil, "b", false, "b"},
		"management":                    {ptr.To(true), "", true, "a"},
		"workload without a name":       {ptr.To(false), "", false, ""},
		"workload that names another":   {ptr.To(false), "b", false, "b"},
		"management that names another": {ptr.To(true), "b", true, "a"},
		"workload that names itself":    {ptr.To(false), "a", false, "a"},
	} {
		c := &Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: ClusterSpec{
			Management: test.management, ManagementCluster: ManagementCluster{Name: test.named},
		}}
		if c.IsSelfManaged() != test.self || c.IsManaged() == test.self || c.ManagedBy() != test.by {
			t.Errorf("%s: self-managed %v, managed %v, by %q", name, c.IsSelfManaged(), c.IsManaged(), c.ManagedBy())
		}
	}
}

func TestOnlyTrueEnablesAnAnnotation(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "": false, "false": false, "yes": false} {
		c := &Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			PausedAnnotation: value, ManagedByCLIAnnotation: value,
		}}}
		if c.IsPaused() != want || c.IsManagedByCLI() != want {
			t.Errorf("%q: paused %v, by a command %v", value, c.IsPaused(), c.IsManagedByCLI())
		}
	}
	if c := (&Cluster{}); c.IsPaused() || c.IsManagedByCLI() || c.IsSkipUpgrade() {
		t.Error("a cluster without annotations is paused or managed by a command")
	}
}

func TestDeprecatedRepositoryFieldIsEquivalent(t *testing.T) {
	g := &GitOpsConfig{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Namespace: "team"}, Spec: GitOpsConfigSpec{Flux: Flux{Github: Github{
		Owner: "o", Repository: "r", FluxSystemNamespace: "s", Branch: "b", ClusterConfigPath: "p", Personal: true,
	}}}}
	f := g.FluxConfig()
	want := GithubProviderConfig{Owner: "o", Repository: "r", Personal: true}
	if f.Name != "fleet" || f.Namespace != "team" || f.Spec.SystemNamespace != "s" || f.Spec.Branch != "b" || f.Spec.ClusterConfigPath != "p" || *f.Spec.Github != want {
		t.Errorf("got %+v", f)
	}
}
