package spec

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/charts"
)

func TestNetworkValuesMatchTheChart(t *testing.T) {
	text, err := charts.Files.ReadFile("cni/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart map[string]any
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	delete(chart, "remove") // It is an action, not a setting.
	var compare func(at string, chart, known map[string]any)
	compare = func(at string, chart, known map[string]any) {
		if diff := cmp.Diff(slices.Sorted(maps.Keys(chart)), slices.Sorted(maps.Keys(known))); diff != "" {
			t.Errorf("values%s (-chart +spec):\n%s", at, diff)
		}
		for key, below := range known {
			if more, ok := below.(map[string]any); ok {
				compare(at+"."+key, chart[key].(map[string]any), more)
			}
		}
	}
	compare("", chart, networkValues)
	if wrong := chartProblems("values", map[string]any{"confDir": chart["confDir"], "resources": chart["resources"]}, networkValues); len(wrong) > 0 {
		t.Errorf("the default values of the chart are rejected: %v", wrong)
	}
}
