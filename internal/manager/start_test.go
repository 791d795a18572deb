package manager_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

func TestStartErrorsSuggestARemedy(t *testing.T) {
	nowhere := kubetest.Kubeconfig(t, &rest.Config{Host: "https://" + kubetest.FreeAddress(t)})
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"the API server is not there", []string{"--kubeconfig=" + nowhere}, []string{"reaching the API server at", "check that it runs"}},
		{"the kubeconfig is not there", []string{"--kubeconfig=/does/not/exist"}, []string{"/does/not/exist", "--kubeconfig"}},
		{"a flag makes no sense", []string{"--kubeconfig=" + nowhere, "--concurrency=0"}, []string{"--concurrency is 0: must be at least 1"}},
		{"a flag does not exist", []string{"--no-such-flag"}, []string{"unknown flag: --no-such-flag"}},
	} {
		t.Run(tc.name, func(t *testing.T) { failsToStart(t, tc.args, tc.want...) })
	}
}

// failsToStart checks what a manager prints that can't start.
func failsToStart(t *testing.T, args []string, wants ...string) {
	t.Helper()
	out, err := managertest.Command(t, args).CombinedOutput()
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range wants {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}
