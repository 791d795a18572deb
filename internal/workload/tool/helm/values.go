package helm

import (
	"bytes"
	"encoding/json"

	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// effective returns the values of a revision. Without an option these are the wanted ones, even if
// there are none. (The helm command would reuse the last revision's values then, and never
// converge.)
func effective(o addonsv1.HelmUpgradeOptions, want map[string]any, last *record) map[string]any {
	if last == nil || o.ResetValues || !o.ReuseValues && !o.ResetThenReuseValues {
		return want
	}
	return overlay(last.Config, want)
}

// startValues replaces the chart's values by those of the last revision if they are to be reused,
// and reports whether they are.
func startValues(o addonsv1.HelmUpgradeOptions, chart *chartv2.Chart, last *record) (bool, error) {
	if last == nil || last.Chart == nil || o.ResetValues || !o.ReuseValues {
		return false, nil
	}
	values, err := commonutil.CoalesceValues(last.Chart, last.Config)
	if err != nil {
		return false, err
	}
	chart.Values = values
	return true, nil
}

// overlay merges above over below. A null in above removes a key.
func overlay(below, above map[string]any) map[string]any {
	out := make(map[string]any, len(below)+len(above))
	for key, value := range below {
		out[key] = value
	}
	for key, value := range above {
		lower, isMap := out[key].(map[string]any)
		upper, both := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isMap && both:
			out[key] = overlay(lower, upper)
		default:
			out[key] = value
		}
	}
	return out
}

// equalValues compares as JSON, the format in which values are stored.
func equalValues(a, b map[string]any) bool {
	if len(a) == 0 && len(b) == 0 {
		return true
	}
	left, err := json.Marshal(a)
	if err != nil {
		return false
	}
	right, err := json.Marshal(b)
	return err == nil && bytes.Equal(left, right)
}

// sameTemplates compares a chart with a stored one, which has no subcharts.
func sameTemplates(a, b *chartv2.Chart) bool {
	if len(a.Templates) != len(b.Templates) {
		return false
	}
	have := make(map[string][]byte, len(a.Templates))
	for _, t := range a.Templates {
		have[t.Name] = t.Data
	}
	for _, t := range b.Templates {
		data, ok := have[t.Name]
		if !ok || !bytes.Equal(data, t.Data) {
			return false
		}
	}
	return true
}
