// Package values makes the values of a release out of a Package's config, and reads what a chart says of itself.
//
// Config is what people wrote, so errors never repeat it. Start with Compose.
package values

import (
	"fmt"
	"maps"

	"sigs.k8s.io/yaml"
)

// Secrets that charts are told to pull images with. Both are there only on clusters that need them.
const (
	TokenSecret  = "ecr-token"
	MirrorSecret = "registry-mirror-cred"
)

const (
	registryKey = "sourceRegistry"
	secretsKey  = "imagePullSecrets"
)

// Compose is config, with the registry that images come from unless config has its own, and with the secrets to pull them beside those that
// config has. The same input gives the same text.
func Compose(config map[string]any, imageRegistry string) (string, error) {
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
		return "", fmt.Errorf("writing the values: %w", err)
	}
	return string(text), nil
}

// withSecrets is a list of what was there and what is missing. What is no list means something else to the chart, and stays.
func withSecrets(own any) ([]any, bool) {
	list, ok := own.([]any)
	if own != nil && !ok {
		return nil, false
	}
	out := append([]any(nil), list...)
	for _, name := range []string{TokenSecret, MirrorSecret} {
		if !names(list, name) {
			out = append(out, map[string]any{"name": name})
		}
	}
	return out, true
}

// names says that a list has a secret, in either of the forms that charts know.
func names(list []any, name string) bool {
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
