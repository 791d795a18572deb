package template

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/test/yamltest"
)

func TestParsersRejectTextsThatGrow(t *testing.T) {
	text := yamltest.Text()
	for name, read := range map[string]func() error{
		"Merge":        func() error { _, err := Merge([]byte(text)); return err },
		"mustFromYaml": func() error { _, err := mustFromYAML(text); return err },
		"fromYaml": func() error {
			if fromYAML(text)["Error"] != nil {
				return errors.New("rejected")
			}
			return nil
		},
		"fromYamlArray": func() error {
			if l := fromArray("- " + strings.ReplaceAll(text, "\n", "\n  ")); len(l) == 1 && l[0] == "not a YAML array" {
				return errors.New("rejected")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { yamltest.Attack(t, read) })
	}
}
