package connection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestRepositoryOfAFluxConfig(t *testing.T) {
	generic := &anywherev1.GitProviderConfig{RepositoryURL: "ssh://git@git.example.com/fleet.git"}
	for name, test := range map[string]struct {
		spec anywherev1.FluxConfigSpec
		want Repository
		err  string
	}{
		"defaults": {
			anywherev1.FluxConfigSpec{Git: generic}, Repository{URL: generic.RepositoryURL, Branch: "main", Namespace: "flux-system"}, "",
		},
		"GitHub": {
			anywherev1.FluxConfigSpec{Github: &anywherev1.GithubProviderConfig{Owner: "acme", Repository: "fleet"}, Branch: "prod", SystemNamespace: "flux", ClusterConfigPath: "clusters/mgmt"},
			Repository{URL: "https://github.com/acme/fleet.git", Branch: "prod", Namespace: "flux", Path: "clusters/mgmt"},
			"",
		},
		"a GitHub name with a slash": {
			anywherev1.FluxConfigSpec{Github: &anywherev1.GithubProviderConfig{Owner: "acme/../evil", Repository: "fleet"}},
			Repository{URL: "https://github.com/acme%2F..%2Fevil/fleet.git", Branch: "main", Namespace: "flux-system"},
			"",
		},
		"nothing":                      {anywherev1.FluxConfigSpec{}, Repository{}, "set either github or git"},
		"both":                         {anywherev1.FluxConfigSpec{Git: generic, Github: &anywherev1.GithubProviderConfig{}}, Repository{}, "set either github or git"},
		"the management cluster's own": {anywherev1.FluxConfigSpec{Git: generic, ClusterConfigPath: "clusters/mgmt/eksa-system"}, Repository{}, "part of the directory of a cluster"},
		"another cluster's":            {anywherev1.FluxConfigSpec{Git: generic, ClusterConfigPath: "./clusters//mgmt/workload-clusters/dev/"}, Repository{}, "part of the directory of a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(test.spec)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" && err == nil {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestCredentialsAreBoundToARepositoryAndNamespaces(t *testing.T) {
	for name, test := range map[string]struct {
		url, boundTo, namespaces, want string
	}{
		"bound":                         {"https://git.example.com/fleet", "https://git.example.com/fleet", "team", ""},
		"bound in another spelling":     {"https://git.example.com/fleet", "https://GIT.example.com:443/fleet.git", "other, team", ""},
		"open to all namespaces":        {"https://git.example.com/fleet", "https://git.example.com/fleet", "*", ""},
		"open to another namespace":     {"https://git.example.com/fleet", "https://git.example.com/fleet", "team-2", `may not be used by clusters in namespace "team"`},
		"open to no namespace":          {"https://git.example.com/fleet", "https://git.example.com/fleet", "", "may not be used"},
		"bound to another repository":   {"https://git.example.com/fleet", "https://git.example.com/other", "team", `may not be sent to "https://git.example.com/fleet"`},
		"bound to another server":       {"https://evil.example.com/fleet", "https://git.example.com/fleet", "team", "may not be sent"},
		"bound to nothing":              {"https://git.example.com/fleet", "", "team", "may not be sent"},
		"both are invalid":              {"", "", "*", "may not be sent"},
		"a URL with another user's key": {"ssh://root@git.example.com/fleet", "ssh://git@git.example.com/fleet", "team", "may not be sent"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &metav1.ObjectMeta{Namespace: "flux-system", Name: "flux-system", Annotations: map[string]string{
				anywherev1.GitURLAnnotation: test.boundTo, anywherev1.CredentialsNamespacesAnnotation: test.namespaces,
			}}
			got := Plane{}.Deny(Repository{URL: test.url}, secret, "team")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("Deny() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestFindConvertsAGitOpsConfig(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := anywherev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	old := &anywherev1.GitOpsConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "old"}}
	old.Spec.Flux.Github = anywherev1.Github{Owner: "acme", Repository: "fleet"}
	current := &anywherev1.FluxConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "new"}, Spec: anywherev1.FluxConfigSpec{Branch: "b"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(old, current).Build()
	found, err := Find(t.Context(), c, client.ObjectKey{Namespace: "team", Name: "old"})
	if err != nil || found.Spec.Github.Owner != "acme" {
		t.Errorf("found %+v, error %v", found, err)
	}
	found, err = Find(t.Context(), c, client.ObjectKey{Namespace: "team", Name: "new"})
	if err != nil || found.Spec.Branch != "b" {
		t.Errorf("found %+v, error %v", found, err)
	}
	if _, err = Find(t.Context(), c, client.ObjectKey{Namespace: "team", Name: "none"}); !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
}
