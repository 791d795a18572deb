package gitops_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/model/gitops"
)

// edited returns a repository in which a text of a file is replaced.
func edited(fsys fstest.MapFS, name, old, with string) fstest.MapFS {
	text := string(fsys[name].Data)
	return commit(fsys, gitops.Changes{name: []byte(strings.Replace(text, old, with, 1))})
}

func TestDiff(t *testing.T) {
	dev := root + "/workload-clusters/dev/"
	file := dev + "eksa-cluster.yaml"
	for _, one := range []struct {
		name  string
		after fstest.MapFS
		want  string
	}{
		{"nothing", fleet(), "No cluster changes below clusters/mgmt.\n"},
		{"another file", commit(fleet(), gitops.Changes{"README.md": []byte("x"), root + "/flux-system/gotk-sync.yaml": nil}), "No cluster changes below clusters/mgmt.\n"},
		{"a new cluster", commit(fleet(), gitops.Changes{root + "/new.yaml": []byte(specText("new"))}), "new: created (clusters/mgmt/new.yaml)\n"},
		{"a removed cluster", commit(fleet(), gitops.Changes{root + "/by-hand/a.yaml": nil}), "hand-a: removed (clusters/mgmt/by-hand/a.yaml)\n"},
		{
			"changed, added and removed fields", edited(edited(fleet(), file, "    count: 1\n  datacenterRef", "    taints: [{key: a}]\n  licenseToken: abc\n  datacenterRef"), file, `"1.36"`, `"1.37"`),
			"dev: changed (" + file + ")\n" +
				"  Cluster/dev spec.kubernetesVersion: \"1.36\" -> \"1.37\"\n" +
				"  Cluster/dev spec.licenseToken: (none) -> (hidden)\n" +
				"  Cluster/dev spec.workerNodeGroupConfigurations[md-0].count: 1 -> (none)\n" +
				"  Cluster/dev spec.workerNodeGroupConfigurations[md-0].taints[0].key: (none) -> \"a\"\n",
		},
		{"an add-on", edited(fleet(), dev+"addons/cni.yaml", "kind", "# new\nkind"), "dev: changed (" + file + ")\n  file " + dev + "addons/cni.yaml\n"},
		{"a comment", edited(fleet(), file, "# Owned", "# Formerly owned"), "dev: changed (" + file + ")\n  file " + file + "\n"},
		{
			"a moved cluster", commit(fleet(), gitops.Changes{root + "/by-hand/a.yaml": nil, root + "/by-hand/c.yaml": []byte(specText("hand-a"))}),
			"hand-a: changed (clusters/mgmt/by-hand/c.yaml)\n  moved from clusters/mgmt/by-hand/a.yaml\n  file clusters/mgmt/by-hand/a.yaml\n  file clusters/mgmt/by-hand/c.yaml\n",
		},
		{"a spec that can't be read", edited(fleet(), file, "spec:", "spec: ["), "dev: unreadable (" + file + ")\n"},
	} {
		t.Run(one.name, func(t *testing.T) {
			report, err := gitops.Diff(fleet(), one.after, root)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one.want, report.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiffIsBounded(t *testing.T) {
	file := root + "/workload-clusters/dev/eksa-cluster.yaml"
	var labels strings.Builder
	changes := gitops.Changes{}
	for i := range 70 {
		fmt.Fprintf(&labels, "    l%d: %s\n", i, strings.Repeat("é", 200))
		changes[fmt.Sprintf("%s/workload-clusters/dev/addons/%d.yaml", root, i)] = []byte("x")
	}
	after := commit(edited(fleet(), file, "spec:", "  labels:\n"+labels.String()+"spec:"), changes)
	report, err := gitops.Diff(fleet(), after, root)
	if err != nil {
		t.Fatal(err)
	}
	c := report.Clusters[0]
	if len(c.Fields) != 50 || c.MoreFields != 20 || len(c.Files) != 20 || c.MoreFiles != 50 {
		t.Errorf("%d fields and %d more, %d files and %d more", len(c.Fields), c.MoreFields, len(c.Files), c.MoreFiles)
	}
	for _, text := range []string{report.Text(), report.Markdown()} {
		if len(text) > 20_000 || !strings.Contains(text, "nd 20 more fields") || !strings.Contains(text, "nd 50 more files") {
			t.Errorf("%d bytes:\n%.500s", len(text), text)
		}
	}
}

func TestReportsHaveNoControlCharacters(t *testing.T) {
	evil := "\x1b[2J\u009b\n" + strings.Repeat("x", 500)
	after := commit(fleet(), gitops.Changes{
		root + "/" + evil + "/x.yaml":                            []byte(strings.Replace(specText("dev"), "name: dev #", "name: \"\\e[2J\" #", 1)),
		root + "/workload-clusters/dev/addons/" + evil + ".yaml": []byte("x"), root + "/broken" + evil + ".yaml": []byte("anywhere.eks.amazonaws.com: ["),
	})
	report, err := gitops.Diff(fleet(), after, root)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := gitops.Validate(after, root)
	if err != nil || len(report.Clusters) != 2 || len(problems) == 0 {
		t.Fatalf("%d clusters, %d problems, %v", len(report.Clusters), len(problems), err)
	}
	all := report.Text() + report.Markdown()
	for _, p := range problems {
		all += p.String() + "\n"
	}
	if strings.ContainsAny(all, "\x1b\u009b") {
		t.Errorf("control characters in:\n%q", all)
	}
	for line := range strings.Lines(all) {
		if len(line) > 1000 {
			t.Errorf("%d bytes in a line", len(line))
		}
	}
}

func TestMarkdownEscapesText(t *testing.T) {
	file := root + "/workload-clusters/dev/eksa-cluster.yaml"
	after := edited(fleet(), file, "spec:", "  annotations: {\"a|b\": \"`x` @all\\n<b>\"}\nspec:")
	report, err := gitops.Diff(fleet(), after, root)
	if err != nil {
		t.Fatal(err)
	}
	want := "### Cluster `dev` changed\n\n`" + file + "`\n\n| object | field | before | after |\n|---|---|---|---|\n" +
		"| `Cluster/dev` | `metadata.annotations.a\\|b` | `(none)` | `` \"`x` @all\\n\\u003cb\\u003e\" `` |\n\n"
	if diff := cmp.Diff(want, report.Markdown()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
