package gitops

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/cli/ui"
	model "github.com/drover-dev/drover/internal/model/gitops"
	"github.com/drover-dev/drover/internal/operate/gitops"
	"github.com/drover-dev/drover/internal/test/gittest"
)

// run runs a command, and returns what it printed and its exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, told bytes.Buffer
	cmd := NewCommand(&ui.IO{In: strings.NewReader(""), Out: &out, Err: &told})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	code = ui.Report(&told, cmd.ExecuteContext(t.Context()))
	return out.String(), told.String(), code
}

const cluster = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: one
spec:
  kubernetesVersion: "1.35"
  management: false
  controlPlaneConfiguration:
    count: 1
  workerNodeGroupConfigurations:
  - name: md-0
    count: 1
  datacenterRef:
    kind: DockerDatacenterConfig
    name: one
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata:
  name: one
`

func TestCheckAndDiffInACheckout(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "one.yaml")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Run(t, dir, "init", "--initial-branch=main")
	write(cluster)
	gittest.Run(t, dir, "add", ".")
	gittest.Run(t, dir, "commit", "-m", "Add cluster one")
	if out, _, code := run(t, "check", dir); code != ui.ExitOK || out != "1 cluster, no problems found.\n" {
		t.Errorf("check: %q, %d", out, code)
	}
	if out, _, code := run(t, "diff", dir, "--exit-code"); code != ui.ExitOK || !strings.Contains(out, "No cluster changes") {
		t.Errorf("diff: %q, %d", out, code)
	}

	write(strings.Replace(cluster, "count: 1", "count: 2", 1))
	out, _, code := run(t, "check", dir)
	if code != ui.ExitFailed || !strings.HasPrefix(out, file+":9: spec.controlPlaneConfiguration.count") || !strings.HasSuffix(out, "1 cluster, 1 problem found.\n") {
		t.Errorf("check: %q, %d", out, code)
	}
	out, _, code = run(t, "check", dir, "-o", "json")
	verdict := gitops.Verdict{}
	if err := json.Unmarshal([]byte(out), &verdict); err != nil || code != ui.ExitFailed || len(verdict.Problems) != 1 {
		t.Errorf("check -o json: %q, %d, %v", out, code, err)
	}
	if out, _, code := run(t, "diff", dir, "--exit-code"); code != ui.ExitFailed || !strings.Contains(out, "spec.controlPlaneConfiguration.count: 1 -> 2") {
		t.Errorf("diff: %q, %d", out, code)
	}
	if out, _, code := run(t, "diff", dir, "-o", "markdown"); code != ui.ExitOK || !strings.HasPrefix(out, "### Cluster `one` changed") {
		t.Errorf("diff -o markdown: %q, %d", out, code)
	}
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"check", ".", "--remote", "https://git.example.com/fleet"},
		{"check", "--path", "clusters"},
		{"diff", "-o", "yaml"},
		{"enable"},
		{"enable", "-f", "one.yaml", "--url", "https://git.example.com/fleet"},
		{"rotate-key", "--algorithm", "dsa"},
	} {
		if _, told, code := run(t, args...); code != ui.ExitUsage {
			t.Errorf("%v exits with %d: %s", args, code, told)
		}
	}
	if _, told, code := run(t, "disable"); code != ui.ExitFailed || !strings.Contains(told, "use --yes") {
		t.Errorf("disable without a terminal exits with %d: %s", code, told)
	}
}

func TestFluxConfigComesFromASpecOrFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "one.yaml")
	config := "---\napiVersion: anywhere.eks.amazonaws.com/v1alpha1\nkind: FluxConfig\nmetadata:\n  name: fleet\nspec:\n  git:\n    repositoryUrl: ssh://git@git.example.com/fleet\n"
	for name, tt := range map[string]struct {
		content, problem string
	}{
		"a spec with one":           {cluster + config, ""},
		"a spec without":            {cluster, "it has no FluxConfig"},
		"two of them":               {config + config, "more than one FluxConfig"},
		"a misspelled field":        {strings.Replace(config, "repositoryUrl", "repositoryURI", 1), "unknown field"},
		"something that isn't YAML": {"a: b: c", "reading"},
	} {
		if err := os.WriteFile(file, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := (&enabling{file: file}).config(&ui.IO{})
		if tt.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || c.Namespace != "default" || c.Spec.Branch != "main" || c.Spec.SystemNamespace != "flux-system" || c.Spec.Git.RepositoryURL != "ssh://git@git.example.com/fleet" {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	e := &enabling{url: "https://git.example.com/fleet", name: "fleet", path: "clusters/mgmt", target: target{namespace: "team-a"}}
	if c, err := e.config(nil); err != nil || c.Namespace != "team-a" || c.Spec.ClusterConfigPath != "clusters/mgmt" {
		t.Errorf("flags: %+v, %v", c, err)
	}
}

func TestStatusTable(t *testing.T) {
	var out bytes.Buffer
	err := errors.Join(printStatus(&out, nil), printStatus(&out, []gitops.Status{{
		Namespace: "team-a", FluxConfig: "fleet", URL: "ssh://git@git.example.com/fleet", Revision: "main@sha1:0123456789abcdef", State: "Ready",
		Clusters: []gitops.ClusterStatus{
			{Name: "one", Revision: "main@sha1:0123456789abcdef", State: "Ready", Changes: []string{"one-x"}},
			{Name: "two", State: "BuildFailed", Message: "no such file", Missing: true},
			{Name: "three", State: "Ready", MoreDifferences: 4, Differences: []model.FieldChange{
				{Object: "Cluster/three", Path: "spec.a", Old: "1", New: "2"},
				{Object: "Cluster/three", Path: "spec.b", New: "2"},
				{Object: "FluxConfig/three", New: "exists"},
				{Object: "Cluster/three", Path: "spec.c", Old: "1"},
			}},
		},
	}}), printEnabled(&out, &gitops.Enabled{URL: "ssh://git@git.example.com/fleet", Branch: "main", Namespaces: []string{"a", "b"}, Signed: true}))
	if err != nil {
		t.Fatal(err)
	}
	want := "No repository is connected. Connect one with `drover gitops enable`.\n" +
		`NAME           REVISION            STATE         DETAIL
team-a/fleet   main@0123456789ab   Ready         ssh://git@git.example.com/fleet
  one          main@0123456789ab   Ready         unfinished: one-x
  two                              BuildFailed   no such file; not in the newest commit
  three                            Ready         differs from the newest commit: Cluster/three spec.a is 1, Git has 2, Cluster/three spec.b is missing, Git has 2, FluxConfig/three is missing, 5 more
` + "Repository ssh://git@git.example.com/fleet is connected for namespaces a, b.\n" +
		"Branch main does not exist; the first change of a cluster creates it.\nCommits are signed.\n" +
		"Flux does not run on this management plane. Start it with `drover up --gitops`.\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
