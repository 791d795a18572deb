package userdata

import (
	"regexp"
	"strings"
)

// Keys of the placeholders that bootstrap data may hold, as in {{ .kubernetesVersion }}. They were
// once part of a template language. Only these are left of it, so that the braces of other
// languages pass unchanged.
const (
	KeyVersion    = "kubernetesVersion"
	KeyEndpoint   = "controlPlaneEndpoint"
	KeyAPIKey     = "apiKey"
	KeyCPEMConfig = "cpemConfig"
	KeyEMLBID     = "emlbID"
)

var (
	placeholder = regexp.MustCompile(`\{\{-?\s*\.(` +
		strings.Join([]string{KeyVersion, KeyEndpoint, KeyAPIKey, KeyCPEMConfig, KeyEMLBID}, "|") + `)\s*-?\}\}`)
	// escaped is how manifests protect the braces of cloud-init from the former template language:
	// {{ `{{ v1.instance_id }}` }}.
	escaped = regexp.MustCompile("\\{\\{-?\\s*`([^`]*)`\\s*-?\\}\\}")
	// either matches both in one pass, so that unescaped text is not filled in.
	either = regexp.MustCompile(escaped.String() + "|" + placeholder.String())
)

// Fill replaces the placeholders in bootstrap data with their values, or with nothing where there
// is no value. It never fills in the API key, since everything that can reach the metadata service
// could read it there; withheld reports whether the data asked for the key.
func Fill(data string, values map[string]string) (filled string, withheld bool) {
	filled = either.ReplaceAllStringFunc(data, func(found string) string {
		if m := escaped.FindStringSubmatch(found); m != nil {
			return m[1]
		}
		key := placeholder.FindStringSubmatch(found)[1]
		if key == KeyAPIKey {
			withheld = true
			return ""
		}
		return values[key]
	})
	return filled, withheld
}
