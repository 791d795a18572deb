package capi

import "testing"

func TestContractVersion(t *testing.T) {
	for _, tc := range []struct {
		name   string
		labels map[string]string
		want   string
	}{
		{"the newer contract wins", map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v1beta2"}, "v1beta2"},
		{"the older contract will do", map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha4"}, "v1alpha4"},
		{"the newest of several versions wins", map[string]string{"cluster.x-k8s.io/v1beta2": "v1alpha1_v1beta2_v1beta1"}, "v1beta2"},
		{"a stable version is newer than any beta", map[string]string{"cluster.x-k8s.io/v1beta2": "v2beta1_v1"}, "v1"},
		{"an empty label counts as none", map[string]string{"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1"}, "v1"},
		{"an unknown contract counts as none", map[string]string{"cluster.x-k8s.io/v1alpha4": "v1"}, ""},
		{"no labels", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := contractVersion(tc.labels)
			if got != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %t, want %q", got, ok, tc.want)
			}
		})
	}
}
