package build

import (
	"strings"
	"testing"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestPercentSignsOfAProxySurviveSystemd(t *testing.T) {
	in := input(t, "small")
	in.Config.Cluster.Spec.ProxyConfiguration = &anywherev1.ProxyConfiguration{
		HTTPProxy: "http://developer:50%25%20off@192.0.2.1:3128", HTTPSProxy: "192.0.2.1:3129", NoProxy: []string{".example.com"},
	}
	for _, f := range build(t, in).ControlPlane.Spec.KubeadmConfigSpec.Files {
		if f.Path != egressFile {
			continue
		}
		want := "[Service]\nEnvironment=\"HTTP_PROXY=http://developer:50%%25%%20off@192.0.2.1:3128\"\nEnvironment=\"HTTPS_PROXY=192.0.2.1:3129\"\nEnvironment=\"NO_PROXY=.example.com,"
		if !strings.HasPrefix(f.Content, want) {
			t.Errorf("the unit has\n%s, want\n%s…", f.Content, want)
		}
		return
	}
	t.Errorf("machines have no %s", egressFile)
}
