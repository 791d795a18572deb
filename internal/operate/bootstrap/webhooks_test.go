package bootstrap

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/config"
)

func TestCertificatesAreRequiredOnceAllServersPresentThem(t *testing.T) {
	server := func(args ...string) corev1.Pod {
		return corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: append([]string{"kube-apiserver"}, args...)}}}}
	}
	ours, theirs := "--admission-control-config-file="+config.AdmissionFile, "--admission-control-config-file=/etc/mine.yaml"
	for name, tt := range map[string]struct {
		servers []corev1.Pod
		want    bool
	}{
		"no server is known yet":       {nil, false},
		"all present a certificate":    {[]corev1.Pod{server(ours), server("--v=2", ours)}, true},
		"one is of an earlier version": {[]corev1.Pod{server(ours), server()}, false},
		"the spec names another file":  {[]corev1.Pod{server(theirs)}, false},
		"an unknown API server":        {[]corev1.Pod{{}}, false},
	} {
		if got := identifyThemselves(tt.servers); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
	}
}
