package admission

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// TestDocumentedExamplesAreAccepted validates every YAML example of the guide and of the reference:
// whole objects, and parts of a spec.
func TestDocumentedExamplesAreAccepted(t *testing.T) {
	count := 0
	for _, file := range []string{"guides/install-addons.md", "reference/helmchartproxy.md", "reference/helmreleaseproxy.md"} {
		data, err := os.ReadFile("../../../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(data), "```yaml\n")[1:] {
			text, _, _ := strings.Cut(block, "```")
			count++
			t.Run(fmt.Sprint(file, " ", i+1), func(t *testing.T) { accepted(t, text) })
		}
	}
	if count < 15 {
		t.Errorf("only %d examples were found", count)
	}
}

func accepted(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "kind: HelmReleaseProxy") {
		r := &addonsv1.HelmReleaseProxy{}
		if err := yaml.UnmarshalStrict([]byte(text), r); err != nil {
			t.Fatal(err)
		}
		r.Namespace = "default" // as kubectl does
		if _, err := (&releaseRules{}).ValidateCreate(t.Context(), r); err != nil {
			t.Error(err)
		}
		return
	}
	c := good()
	into := any(&c.Spec)
	if strings.Contains(text, "kind: HelmChartProxy") {
		into = c
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	c.Spec.DependsOn = nil // dependencies are not known here
	if _, err := (&chartRules{}).ValidateCreate(t.Context(), c); err != nil {
		t.Error(err)
	}
}
