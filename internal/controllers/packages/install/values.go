package install

import (
	"fmt"
	"maps"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
)

const (
	// tokenSecret is a Secret to pull images with. Like mirror.Credentials, it exists only on
	// clusters that need it.
	tokenSecret = "ecr-token"

	registryKey = "sourceRegistry"
	secretsKey  = "imagePullSecrets"
)

// composeValues returns the values of a release: the config, with the registry of images unless the
// config sets it, and with the Secrets to pull them. Errors never contain values.
func composeValues(config map[string]any, imageRegistry string) (string, error) {
	all := maps.Clone(config)
	if all == nil {
		all = map[string]any{}
	}
	if own, ok := all[registryKey].(string); !ok || own == "" {
		all[registryKey] = imageRegistry
	}
	if merged, ok := withSecrets(all[secretsKey]); ok {
		all[secretsKey] = merged
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encoding the values: %w", err)
	}
	return string(text), nil
}

// withSecrets adds missing Secrets to a list. It reports false for a value that is not a list,
// which has another meaning to the chart.
func withSecrets(own any) ([]any, bool) {
	list, ok := own.([]any)
	if own != nil && !ok {
		return nil, false
	}
	out := append([]any(nil), list...)
	for _, name := range []string{tokenSecret, mirror.Credentials} {
		if !lists(list, name) {
			out = append(out, map[string]any{"name": name})
		}
	}
	return out, true
}

// lists reports whether a list contains a Secret, as a name or as an object.
func lists(list []any, name string) bool {
	for _, entry := range list {
		if entry == name {
			return true
		}
		if object, ok := entry.(map[string]any); ok && object["name"] == name {
			return true
		}
	}
	return false
}
