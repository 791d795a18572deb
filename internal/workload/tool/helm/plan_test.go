package helm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

func rec(revision int, status, chart string) *record {
	return &record{chart: chart, Release: &releasev1.Release{Version: revision, Info: &releasev1.Info{Status: releasecommon.Status(status)}}}
}

func TestDecide(t *testing.T) {
	at := func(newest, base *record, same bool) *situation {
		return &situation{history: history{{revision: 3}}, newest: newest, base: base, same: same}
	}
	old := rec(2, "deployed", "x")
	tests := map[string]struct {
		in   *situation
		want step
	}{
		"nothing there":                     {&situation{}, step{revision: 1, install: true}},
		"as wanted":                         {at(rec(3, "deployed", ""), rec(3, "deployed", ""), true), step{adopt: true, revision: 3}},
		"not as wanted":                     {at(rec(3, "deployed", "x"), rec(3, "deployed", "x"), false), step{revision: 4}},
		"our pending upgrade":               {at(rec(3, "pending-upgrade", "x"), old, true), step{resume: true, revision: 3}},
		"our pending install":               {at(rec(3, "pending-install", "x"), nil, true), step{resume: true, revision: 3, install: true}},
		"somebody's pending install":        {at(rec(3, "pending-install", ""), nil, true), step{revision: 4, install: true}},
		"a pending upgrade to other values": {at(rec(3, "pending-upgrade", "x"), old, false), step{revision: 4}},
		"our failed upgrade":                {at(rec(3, "failed", "x"), old, true), step{resume: true, revision: 3}},
		"somebody's failed upgrade":         {at(rec(3, "failed", ""), old, true), step{revision: 4}},
		"uninstalled":                       {at(rec(3, "uninstalled", "x"), nil, true), step{revision: 4, install: true}},
		"uninstalling":                      {at(rec(3, "uninstalling", "x"), nil, true), step{revision: 4, install: true}},
		"superseded":                        {at(rec(3, "superseded", "x"), rec(3, "superseded", "x"), true), step{revision: 4}},
		"unreadable":                        {at(nil, nil, false), step{revision: 4, install: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, decide(tt.in), cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLastCompleteRevision(t *testing.T) {
	tests := map[string]struct {
		statuses []string // the newest first
		want     int
	}{
		"deployed before":                  {[]string{"failed", "deployed", "superseded"}, 2},
		"deployed further back":            {[]string{"failed", "failed", "deployed"}, 1},
		"superseded by what was cut short": {[]string{"pending-upgrade", "superseded", "superseded"}, 2},
		"uninstalled since":                {[]string{"failed", "uninstalled", "superseded"}, 0},
		"never":                            {[]string{"failed", "failed"}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var h history
			for i, status := range tt.statuses {
				h = append(h, entry{revision: len(tt.statuses) - i, status: status})
			}
			if got, _ := h.lastComplete(); got.revision != tt.want {
				t.Errorf("revision %d, want %d", got.revision, tt.want)
			}
		})
	}
}

func TestOverlayMergesValues(t *testing.T) {
	below := map[string]any{"a": 1, "b": map[string]any{"c": 2, "d": 3}, "e": []any{1}, "f": 4}
	above := map[string]any{"a": "x", "b": map[string]any{"c": 5}, "e": []any{}, "f": nil}
	want := map[string]any{"a": "x", "b": map[string]any{"c": 5, "d": 3}, "e": []any{}}
	if diff := cmp.Diff(want, overlay(below, above)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"c": 2, "d": 3}, below["b"]); diff != "" {
		t.Errorf("what is below was changed (-want +got):\n%s", diff)
	}
}

func TestIgnoredFieldsAreKept(t *testing.T) {
	of := func(fields map[string]any) *unstructured.Unstructured {
		fields["apiVersion"], fields["kind"] = "v1", "Thing"
		return &unstructured.Unstructured{Object: fields}
	}
	wanted := func() *unstructured.Unstructured {
		return of(map[string]any{"spec": map[string]any{"n": int64(1), "gone": "x", "list": []any{map[string]any{"image": "a"}}, "a/b": "c"}})
	}
	live := of(map[string]any{"spec": map[string]any{"n": int64(7), "list": []any{map[string]any{"image": "b"}}, "a/b": "d"}})
	rules := []addonsv1.IgnoreRule{
		{Kind: "Thing", Paths: []string{"/spec/n", "/spec/gone", "/spec/list/0/image", "/spec/a~1b", "/spec/never/there"}},
		{Kind: "Other", Paths: []string{"/kind"}},
	}
	got := obj.WithLive(wanted(), live, obj.Pointers(rules, wanted()))
	want := of(map[string]any{"spec": map[string]any{"n": int64(7), "list": []any{map[string]any{"image": "b"}}, "a/b": "d"}})
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestCloneIsIndependentOfTheChart(t *testing.T) {
	sub := &chartv2.Chart{Metadata: &chartv2.Metadata{Name: "sub", Version: "1.0.0", APIVersion: "v2"}, Values: map[string]any{"x": 1}}
	chart := &chartv2.Chart{Metadata: &chartv2.Metadata{Name: "app", Version: "1.0.0", APIVersion: "v2", Dependencies: []*chartv2.Dependency{
		{Name: "sub", Version: "1.0.0", Alias: "other", Condition: "other.enabled", ImportValues: []any{map[string]any{"child": "x", "parent": "y"}}},
	}}}
	chart.AddDependency(sub)
	for range 2 {
		for _, enabled := range []bool{false, true} {
			c := clone(chart)
			if err := process(c, map[string]any{"other": map[string]any{"enabled": enabled}}); err != nil {
				t.Fatal(err)
			}
			if got := len(c.Dependencies()) == 1; got != enabled {
				t.Errorf("subchart rendered: got %t, want %t", got, enabled)
			}
		}
	}
	if len(chart.Dependencies()) != 1 || chart.Metadata.Dependencies[0].Name != "sub" || sub.Parent() != chart {
		t.Error("the chart that the clones are of was changed")
	}
}
