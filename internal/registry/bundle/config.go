package bundle

import (
	"errors"
	"fmt"
	"regexp"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// lineNumber extracts the line from a parser's error. The rest may quote values, such as passwords.
var lineNumber = regexp.MustCompile(`line \d+`)

// ParseConfig parses the config of a package. Errors never contain values.
func ParseConfig(config string) (map[string]any, error) {
	text, err := safeyaml.ToJSON([]byte(config))
	if errors.Is(err, safeyaml.ErrLimits) {
		return nil, fmt.Errorf("error converting package configurations to yaml: %w", err)
	}
	if err != nil {
		if line := lineNumber.FindString(err.Error()); line != "" {
			return nil, fmt.Errorf("error converting package configurations to yaml: invalid YAML in %s", line)
		}
		return nil, errors.New("error converting package configurations to yaml: invalid YAML")
	}
	var values map[string]any
	if err := utiljson.Unmarshal(text, &values); err != nil {
		return nil, errors.New("error converting package configurations to yaml: config must be a map")
	}
	if values == nil {
		values = map[string]any{}
	}
	return values, nil
}

// ValidateConfig validates a config against the schema of a version. Without a schema, every map is
// valid.
func ValidateConfig(v *packagesv1.SourceVersion, config string) error {
	schema, err := compile(v)
	if err != nil {
		return err
	}
	values, err := ParseConfig(config)
	if err != nil || schema == nil {
		return err
	}
	return schema.validate(values)
}
