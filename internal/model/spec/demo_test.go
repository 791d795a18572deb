package spec_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/model/spec"
)

// Users start with the specs of the demo, and running it takes minutes.
func TestDemoSpecsAreValid(t *testing.T) {
	script, err := os.ReadFile("../../../hack/demo.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mgmt", "dev"} {
		found := regexp.MustCompile(`(?s)write ` + name + `\.yaml <<-YAML\n(.*?)\n\t+YAML\n`).FindSubmatch(script)
		if found == nil {
			t.Errorf("the demo has no spec of %q", name)
			continue
		}
		text := regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(string(found[1]), "")
		for _, text := range []string{text, strings.NewReplacer("    count: 1\n", "    count: 2\n", `"1.35"`, `"1.36"`).Replace(text)} {
			config, wrong := spec.Check([]byte(text))
			if len(wrong) > 0 || config.Cluster.Name != name || len(config.Ignored) > 0 {
				t.Errorf("the spec of %q is wrong: %v\n%s", name, wrong, text)
			}
		}
	}
}
