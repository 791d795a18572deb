package gitops

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/test/gittest"
)

// managementSpec is the spec of a management cluster that refers to a repository.
func managementSpec(url string) *spec.Config {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "mgmt"}
	c := &spec.Config{
		Cluster: &anywherev1.Cluster{ObjectMeta: meta},
		Docker:  &anywherev1.DockerDatacenterConfig{ObjectMeta: meta},
		Flux:    &anywherev1.FluxConfig{ObjectMeta: meta, Spec: anywherev1.FluxConfigSpec{Git: &anywherev1.GitProviderConfig{RepositoryURL: url}}},
	}
	c.Cluster.Spec = anywherev1.ClusterSpec{
		KubernetesVersion:         "1.36",
		ControlPlaneConfiguration: anywherev1.ControlPlaneConfiguration{Count: 1},
		DatacenterRef:             anywherev1.Ref{Kind: anywherev1.DockerDatacenterConfigKind, Name: "mgmt"},
		GitOpsRef:                 &anywherev1.Ref{Kind: anywherev1.FluxConfigKind, Name: "mgmt"},
	}
	spec.Default(c)
	return c
}

func TestPreflightFindsWhyASpecCantBeCommitted(t *testing.T) {
	server := gittest.NewHTTPS(t)
	const workload = "clusters/mgmt/workload-clusters/dev/eksa-cluster.yaml"
	const cluster = "apiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: Cluster\nmetadata: {name: dev}\nspec: {kubernetesVersion: \"1.36\", managementCluster: {name: mgmt}}\n"
	for name, test := range map[string]struct {
		prepare  func(*gittest.Repository)
		edit     func(*spec.Config)
		password string
		resumed  bool
		want     string
	}{
		"an empty repository": {},
		"files of others": {prepare: func(r *gittest.Repository) {
			r.Commit("main", map[string]string{"README": "x", "clusters/other/a": "b"})
		}},
		"a wrong password": {password: "wrong", want: "access denied"},
		"no password":      {password: " ", want: "DROVER_GIT_PASSWORD"},
		"a protected branch": {prepare: func(r *gittest.Repository) {
			r.Commit("main", map[string]string{"README": "x"})
			r.Hook("update", "echo protected >&2; exit 1")
		}, want: `branch "main"`},
		"clusters of an earlier one": {prepare: func(r *gittest.Repository) { r.Commit("main", map[string]string{workload: cluster}) }, want: `"clusters/mgmt" has clusters already (dev)`},
		"clusters of its own":        {prepare: func(r *gittest.Repository) { r.Commit("main", map[string]string{workload: cluster}) }, resumed: true},
		"a file in place of a directory": {prepare: func(r *gittest.Repository) {
			r.Commit("main", map[string]string{"clusters/mgmt/eksa-system/eksa-cluster.yaml": "kind: [\n"})
		}, want: "eksa-cluster.yaml"},
		"a secret in the spec": {edit: func(c *spec.Config) {
			c.Cluster.Annotations = map[string]string{"token": "ghp_" + strings.Repeat("a1B2", 9)}
		}, want: "would contain secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.ReplaceAll(name, " ", "-") + ".git"
			repository := server.Create(file)
			if test.prepare != nil {
				test.prepare(repository)
			}
			before := repository.Git("for-each-ref")
			password := gittest.Password
			if test.password != "" {
				password = test.password
			}
			c := managementSpec(server.URL(file))
			if test.edit != nil {
				test.edit(c)
			}
			err := Enabling{FluxConfig: c.Flux, Getenv: environment(t, server, password), New: !test.resumed}.Preflight(t.Context(), c)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if after := repository.Git("for-each-ref"); after != before {
				t.Errorf("the repository changed from %q to %q", before, after)
			}
		})
	}
}
