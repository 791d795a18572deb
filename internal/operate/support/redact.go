package support

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hidden replaces a secret.
const hidden = "<redacted>"

// secretText matches secrets in any text. The template keeps the parts of a match that are not
// secret.
var secretText = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`), hidden},
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`), hidden},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), hidden}, // bootstrap tokens
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`), "$1 " + hidden},
	{regexp.MustCompile(`(://)[^/\s:@]+:[^/\s@]+@`), "${1}" + hidden + "@"},
	{regexp.MustCompile(`(?i)((?:password|passwd|token|secret|api[_-]?key|private[_-]?key|certificate-key)["']?\s*[:=]\s*["']?)[^\s"',}&]{4,}`), "${1}" + hidden},
	{regexp.MustCompile(`(client-key-data|client-certificate-data|tls\.key):\s*\S+`), "$1: " + hidden},
}

// Text redacts secrets in a log or a message.
func Text(s string) string {
	for _, one := range secretText {
		s = one.pattern.ReplaceAllString(s, one.with)
	}
	return s
}

// secretField matches the names of fields whose values are secrets. Fields that reference a Secret
// have other suffixes.
var secretField = regexp.MustCompile(`(?i)(password|passwd|token|secret|api_?key|private_?key|credential|dockerconfigjson)s?$`)

// opaque lists, by kind, fields that may contain anything, including secrets: values of charts and
// files of machines.
var opaque = map[string]map[string]bool{
	"HelmChartProxy":        {"valuesTemplate": true},
	"HelmReleaseProxy":      {"values": true, "valuesTemplate": true},
	"Package":               {"config": true},
	"KubeadmConfig":         {"content": true},
	"KubeadmConfigTemplate": {"content": true},
	"KubeadmControlPlane":   {"content": true},
	"PacketMachine":         {"userData": true},
}

// Object redacts secrets in an object, in place.
func Object(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
	if o.GetKind() == "Secret" {
		for _, field := range []string{"data", "stringData"} {
			if values, found := o.Object[field].(map[string]any); found {
				for key, v := range values {
					values[key] = size(v)
				}
			}
		}
		return
	}
	redact(o.Object, opaque[o.GetKind()])
}

func redact(tree map[string]any, opaque map[string]bool) {
	for key, v := range tree {
		tree[key] = redacted(key, v, opaque)
	}
}

func redacted(key string, v any, opaque map[string]bool) any {
	switch v := v.(type) {
	case string:
		if v != "" && (opaque[key] || secretField.MatchString(key)) {
			return size(v)
		}
		return Text(v)
	case map[string]any:
		redact(v, opaque)
	case []any:
		for i := range v {
			v[i] = redacted(key, v[i], opaque)
		}
	}
	return v
}

// size replaces a secret by its size, which often explains a problem.
func size(v any) string {
	text, _ := v.(string)
	return fmt.Sprintf("<redacted, %d bytes in %d lines>", len(text), strings.Count(text, "\n")+1)
}
