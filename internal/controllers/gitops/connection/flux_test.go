package connection

import (
	"strings"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestConnect(t *testing.T) {
	const url = "https://git.example.com/fleet"
	repository := &anywherev1.GitProviderConfig{RepositoryURL: url}
	bound := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		anywherev1.GitURLAnnotation: url, anywherev1.CredentialsNamespacesAnnotation: "team",
	}}}
	open := func(paths string) *corev1.Secret {
		out := bound.DeepCopy()
		out.Annotations[anywherev1.GitPathsAnnotation] = paths
		return out
	}
	for name, tt := range map[string]struct {
		spec         anywherev1.FluxConfigSpec
		management   string
		secret       metav1.Object
		path, denied string
	}{
		"a path that is open":          {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "./fleet//a/"}, "mgmt", open("fleet/b, /fleet/a/"), "fleet/a", ""},
		"the whole repository":         {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "/"}, "mgmt", open("."), ".", ""},
		"another team's path":          {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "fleet/b"}, "mgmt", open("fleet/a"), "fleet/b", "not open"},
		"a path above an open one":     {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "fleet"}, "mgmt", open("fleet/a"), "fleet", "not open"},
		"a path below an open one":     {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "fleet/a/b"}, "mgmt", open("fleet/a"), "fleet/a/b", "not open"},
		"the default, which is closed": {anywherev1.FluxConfigSpec{Git: repository}, "mgmt", open("fleet/a"), "clusters/mgmt", "not open"},
		"no path is open":              {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "fleet"}, "mgmt", open(""), "fleet", "not open"},
		"the default by its name":      {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "clusters/mgmt"}, "mgmt", bound, "clusters/mgmt", ""},
		"a path without annotation":    {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "clusters/other"}, "mgmt", bound, "clusters/other", "not open"},
		"a path of an unnamed plane":   {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "clusters/other"}, "", bound, "clusters/other", "not open"},
		"the management cluster":       {anywherev1.FluxConfigSpec{Git: repository}, "mgmt", bound, "clusters/mgmt", ""},
		"no path":                      {anywherev1.FluxConfigSpec{Git: repository}, "", bound, "", "set it"},
		"another namespace of Flux":    {anywherev1.FluxConfigSpec{Git: repository, SystemNamespace: "team"}, "mgmt", bound, "", `use "flux-system"`},
		"no repository":                {anywherev1.FluxConfigSpec{}, "mgmt", bound, "", "set either github or git"},
		"no Secret":                    {anywherev1.FluxConfigSpec{Git: repository}, "mgmt", nil, "clusters/mgmt", `Secret "flux-system/flux-system" not found`},
		"a Secret for something else":  {anywherev1.FluxConfigSpec{Git: repository}, "mgmt", &corev1.Secret{}, "clusters/mgmt", "may not be sent"},
		"the directory of one cluster": {anywherev1.FluxConfigSpec{Git: repository, ClusterConfigPath: "c/workload-clusters"}, "", bound, "c/workload-clusters", "part of the directory"},
	} {
		t.Run(name, func(t *testing.T) {
			plane := Plane{FluxNamespace: "flux-system", ManagementCluster: tt.management}
			got := plane.Connect(&anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}, Spec: tt.spec}, tt.secret)
			if got.Path != tt.path || (got.Denied == "") != (tt.denied == "") || !strings.Contains(got.Denied, tt.denied) {
				t.Errorf("path %q, denied %q; want %q, %q", got.Path, got.Denied, tt.path, tt.denied)
			}
		})
	}
}

func TestIsFollowed(t *testing.T) {
	r := Repository{URL: "https://git.example.com/fleet", Branch: "main"}
	for name, tt := range map[string]struct {
		spec sourcev1.GitRepositorySpec
		want bool
	}{
		"the same":           {sourcev1.GitRepositorySpec{URL: "https://git.example.com/fleet.git", Reference: &sourcev1.GitRepositoryRef{Branch: "main"}}, true},
		"another branch":     {sourcev1.GitRepositorySpec{URL: r.URL, Reference: &sourcev1.GitRepositoryRef{Branch: "dev"}}, false},
		"another repository": {sourcev1.GitRepositorySpec{URL: "https://git.example.com/other", Reference: &sourcev1.GitRepositoryRef{Branch: "main"}}, false},
		"no branch":          {sourcev1.GitRepositorySpec{URL: r.URL}, false},
	} {
		if got := r.IsFollowed(&sourcev1.GitRepository{Spec: tt.spec}); got != tt.want {
			t.Errorf("%s: IsFollowed = %t", name, got)
		}
	}
}
