package bundle

import (
	"errors"
	"fmt"
	"regexp"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

// where is all that is passed on of what a parser says: the rest may quote a value, which may be a password.
var where = regexp.MustCompile(`line \d+`)

// ParseConfig reads the config of a package. An empty one is an empty map. Errors have no values in them.
func ParseConfig(config string) (map[string]any, error) {
	text, err := yaml.YAMLToJSON([]byte(config))
	if err != nil {
		if line := where.FindString(err.Error()); line != "" {
			return nil, fmt.Errorf("error converting package configurations to yaml: config is no YAML in %s", line)
		}
		return nil, errors.New("error converting package configurations to yaml: config is no YAML")
	}
	var values map[string]any
	if err := utiljson.Unmarshal(text, &values); err != nil {
		return nil, errors.New("error converting package configurations to yaml: config is not a map of names to values")
	}
	if values == nil {
		values = map[string]any{}
	}
	return values, nil
}

// ValidateConfig tells whether a version accepts a config: one without a schema accepts any that can be read.
func ValidateConfig(v *packagesv1.SourceVersion, config string) error {
	schema, err := compile(v)
	if err != nil {
		return err
	}
	values, err := ParseConfig(config)
	if err != nil || schema == nil {
		return err
	}
	return validate(schema, values)
}
