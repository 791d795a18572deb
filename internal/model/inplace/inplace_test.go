package inplace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRefusals(t *testing.T) {
	files := func(content string) map[string]any {
		return map[string]any{"files": []any{map[string]any{"path": "/etc/a", "content": content}}}
	}
	kubelet := func(labels string) map[string]any {
		return map[string]any{"joinConfiguration": map[string]any{"nodeRegistration": map[string]any{"labels": labels}}}
	}
	tests := map[string]struct {
		current, desired Machine
		want             []string
	}{
		"nothing changes":        {Machine{Version: "v1.36.3"}, Machine{Version: "v1.36.3"}, nil},
		"a patch":                {Machine{Version: "v1.36.1"}, Machine{Version: "v1.36.3"}, nil},
		"the next minor version": {Machine{Version: "v1.35.4"}, Machine{Version: "v1.36.3"}, nil},
		"the same configuration": {Machine{"v1.35.4", files("a"), nil}, Machine{"v1.36.3", files("a"), map[string]any{}}, nil},
		"an unset field equals an empty one": {
			Machine{"v1.35.4", map[string]any{"users": nil}, nil},
			Machine{"v1.36.3", map[string]any{"users": []any{}, "ntp": map[string]any{"servers": []any{}}}, nil},
			nil,
		},
		"two minor versions": {
			Machine{Version: "v1.34.1"}, Machine{Version: "v1.36.3"}, []string{"Kubernetes v1.36.3 is more than one minor version newer than its version v1.34.1"},
		},
		"a downgrade": {
			Machine{Version: "v1.36.3"}, Machine{Version: "v1.36.1"}, []string{"Kubernetes v1.36.1 is older than its version v1.36.3"},
		},
		"no version":          {Machine{}, Machine{Version: "v1.36.3"}, []string{`its Kubernetes version "" is unknown`}},
		"a malformed version": {Machine{Version: "v1.36.3"}, Machine{Version: "latest"}, []string{`Kubernetes version "latest" is unknown`}},
		"another file": {
			Machine{"v1.35.4", files("a"), nil}, Machine{"v1.36.3", files("b"), nil}, []string{"its kubeadm configuration changes (files)"},
		},
		"another label": {
			Machine{"v1.36.3", kubelet("a"), nil}, Machine{"v1.36.3", kubelet("b"), nil}, []string{"its kubeadm configuration changes (joinConfiguration.nodeRegistration)"},
		},
		"another plan and version": {
			Machine{"v1.34.0", nil, map[string]any{"machineType": "a", "os": "x"}},
			Machine{"v1.36.3", nil, map[string]any{"machineType": "b", "os": "x"}},
			[]string{"Kubernetes v1.36.3 is more than one minor version newer than its version v1.34.0", "its machine changes (machineType)"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Refusals(tt.current, tt.desired)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReasonsAreBounded(t *testing.T) {
	many := map[string]any{}
	for _, key := range strings.Split("abcdefghij", "") {
		many[key] = key
	}
	got := Refusals(Machine{Version: "v1.36.3"}, Machine{Version: "v1.36.3", Bootstrap: many})
	if len(got) != 1 || !strings.Contains(got[0], "a, b, c, d") || strings.Contains(got[0], "j") {
		t.Errorf("got %q", got)
	}
}

func TestWanted(t *testing.T) {
	for value, want := range map[string]bool{Strategy: true, "RollingUpdate": false, "": false} {
		if Wanted(map[string]string{Annotation: value}) != want {
			t.Errorf("%q: got %t", value, !want)
		}
	}
}
