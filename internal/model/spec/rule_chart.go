package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// check returns what a value must be, or the empty string if it is valid.
type check func(value any) string

// networkValues are the values of the chart of the Pod network that a spec may set. The value
// remove is left out on purpose: it uninstalls the network.
var networkValues = map[string]any{
	"confDir": check(mustBeDirectory),
	"image": map[string]any{
		"repository": check(mustBeText),
		"tag":        check(mustBeText),
		"pullPolicy": check(mustBePullPolicy),
	},
	"resources": map[string]any{
		"requests": check(mustBeQuantities),
		"limits":   check(mustBeQuantities),
	},
}

// helmValuesProblems rejects values that the chart of the Pod network would silently ignore.
func helmValuesProblems(cilium *anywherev1.CiliumConfig, at string) Violations {
	if cilium.HelmValues == nil || len(cilium.HelmValues.Raw) == 0 {
		return nil
	}
	var values map[string]any
	if err := json.Unmarshal(cilium.HelmValues.Raw, &values); err != nil {
		return violation(at, "write it as an object such as {resources: {limits: {memory: 256Mi}}}", "is not an object")
	}
	return chartProblems(at, values, networkValues)
}

func chartProblems(at string, values, known map[string]any) Violations {
	var problems Violations
	for _, key := range slices.Sorted(maps.Keys(values)) {
		where := at + "." + printable(key)
		switch rule := known[key].(type) {
		case check:
			if must := rule(values[key]); must != "" {
				problems = append(problems, violation(where, "write "+must, "the value must be %s", must)...)
			}
		case map[string]any:
			below, ok := values[key].(map[string]any)
			if !ok {
				problems = append(problems, violation(where, "write an object with "+settings(rule), "the value must be an object")...)
				continue
			}
			problems = append(problems, chartProblems(where, below, rule)...)
		default:
			problems = append(problems, violation(where, fmt.Sprintf("use %s here, or %s", settings(known), installOwnNetwork), "the Pod network that Drover installs does not support this setting")...)
		}
	}
	return problems
}

func settings(known map[string]any) string {
	return strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

func mustBeText(value any) string {
	if text, ok := value.(string); ok && text != "" {
		return ""
	}
	return "a string"
}

func mustBeDirectory(value any) string {
	if text, ok := value.(string); ok && path.IsAbs(text) && path.Clean(text) == text {
		return ""
	}
	return "an absolute path, such as /etc/cni/net.d"
}

func mustBePullPolicy(value any) string {
	switch value {
	case string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever):
		return ""
	}
	return fmt.Sprintf("%s, %s or %s", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
}

func mustBeQuantities(value any) string {
	const must = "quantities such as {cpu: 100m, memory: 128Mi}"
	amounts, ok := value.(map[string]any)
	if !ok {
		return must
	}
	for _, amount := range amounts {
		if _, err := resource.ParseQuantity(fmt.Sprint(amount)); err != nil {
			return must
		}
	}
	return ""
}
