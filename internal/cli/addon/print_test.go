package addon

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/addons/plan"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestActionText(t *testing.T) {
	for want, o := range map[string]inspect.Outlook{
		"no changes":                                {Action: plan.Unchanged},
		"install version 1.0.0":                     {Action: plan.Install, Version: "1.0.0"},
		"reinstall version 2.0.0":                   {Action: plan.Reinstall, Version: "2.0.0"},
		"uninstall":                                 {Action: plan.Uninstall},
		"unknown: no kubeconfig":                    {Action: plan.Upgrade, Error: "no kubeconfig"},
		"no object changes, only settings: options": {Action: plan.Upgrade, Fields: []string{"options"}},
		"upgrade version 1.1.0 (values, version)": {
			Action: plan.Upgrade, Version: "1.1.0", Fields: []string{"values", "version"}, Objects: []inspect.Object{{}},
		},
	} {
		if got := actionText(o); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClusterTextNamesTheFirstClusters(t *testing.T) {
	for names, want := range map[string]string{
		"a":             "On cluster a",
		"a b":           "On 2 clusters (a, b)",
		"a b c d e f g": "On 7 clusters (a, b, c, d, e and 2 more)",
	} {
		if got := clusterText(strings.Fields(names)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestExitCodesMatchDiff(t *testing.T) {
	unchanged, changed, unknown := inspect.Outlook{Action: plan.Unchanged}, inspect.Outlook{Action: plan.Install}, inspect.Outlook{Error: "x"}
	for name, tc := range map[string]struct {
		outlook []inspect.Outlook
		want    int
	}{
		"nothing":           {nil, 0},
		"no changes":        {[]inspect.Outlook{unchanged}, 0},
		"changes":           {[]inspect.Outlook{unchanged, changed}, 1},
		"changes, unknowns": {[]inspect.Outlook{changed, unknown}, 2},
	} {
		err := exitCode([]addonDiff{{Outlook: tc.outlook}})
		code := 0
		if failed := new(ui.CodeError); errors.As(err, &failed) {
			code = failed.Code
		}
		if code != tc.want {
			t.Errorf("%s: exit code %d (%v), want %d", name, code, err, tc.want)
		}
	}
}

func TestPrintDiffMarksObjects(t *testing.T) {
	var out strings.Builder
	err := printDiff(&out, []addonDiff{
		{Namespace: "ns", Name: "cni", Outlook: []inspect.Outlook{{Clusters: []string{"a"}, Action: plan.Upgrade, Version: "2", Fields: []string{"version"}, Objects: []inspect.Object{
			{Action: tool.Create, Kind: "Namespace", Name: "apps"},
			{Action: tool.Update, Kind: "ConfigMap", Namespace: "apps", Name: "web", Diff: "data.a: 1 → 2\ndata.b: 3 → 4"},
			{Action: tool.Delete, Kind: "Secret", Namespace: "apps", Name: "old"},
		}}}},
		{Namespace: "ns", Name: "dns"},
	})
	want := `ns/cni
  On cluster a: upgrade version 2 (version)
    + Namespace apps
    ~ ConfigMap apps/web
        data.a: 1 → 2
        data.b: 3 → 4
    - Secret apps/old

ns/dns
  No cluster is selected, and none has a release.
`
	if err != nil || out.String() != want {
		t.Errorf("error %v, output:\n%s", err, out.String())
	}
}
