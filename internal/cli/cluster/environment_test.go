package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

func TestLegacyVariablesSetFlags(t *testing.T) {
	variables := map[string]string{"FILENAME": "x.yaml", "HARDWARE_CSV": "hw.csv", "NO_TIMEOUTS": "true", "PER_MACHINE_WAIT_TIMEOUT": "", "KUBECONFIG": "m", "NAMESPACE": "n"}
	for name, value := range variables {
		t.Setenv(name, value)
	}
	translate(t, []translation{
		{"eksctl-anywhere create cluster", "create cluster --hardware-csv=hw.csv --no-timeouts=true --filename=x.yaml"},
		{"eksctl-anywhere create cluster -f y.yaml -z other.csv", "create cluster -f y.yaml -z other.csv --no-timeouts=true"},
		{"eksctl-anywhere upgrade cluster --filename=y.yaml --no-timeouts=false", "upgrade cluster --filename=y.yaml --no-timeouts=false --hardware-csv=hw.csv"},
		{"eksctl-anywhere upgrade plan cluster", "upgrade plan cluster --hardware-csv=hw.csv --filename=x.yaml"},
		{"eksctl-anywhere delete cluster one", "delete cluster one --hardware-csv=hw.csv"},
		{"eksctl-anywhere get clusters", "get clusters"},
		{"drover create cluster", "create cluster"},
	})
}

func TestFlagsThatVariablesSetExist(t *testing.T) {
	for word, cmd := range map[string][]string{"create": limits, "upgrade": limits, "delete": nil} {
		made := newCreate(&ui.IO{})
		switch word {
		case "upgrade":
			made = newUpgrade(&ui.IO{})
		case "delete":
			made = newDelete(&ui.IO{})
		}
		flags := append([]string{"filename"}, cmd...)
		for name := range without {
			flags = append(flags, name)
		}
		for _, name := range flags {
			if made.Flags().Lookup(name) == nil {
				t.Errorf("%s cluster has no flag --%s", word, name)
			}
		}
	}
}

func TestMirrorCertificateIsReadFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte("certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const mirror = "  registryMirrorConfiguration: {endpoint: 192.0.2.1}\n"
	text := strings.Replace((&starter{name: "one", provider: "docker"}).text(), "spec:\n  kubernetesVersion", "spec:\n"+mirror+"  kubernetesVersion", 1)
	content := func(text string) (string, error) {
		config, err := (&change{}).parse(lifecycle.Create, []byte(text), "one.yaml")
		if err != nil {
			return "", err
		}
		return config.Cluster.Spec.RegistryMirrorConfiguration.CACertContent, nil
	}
	for _, tt := range []struct{ variable, text, want, err string }{
		{"", text, "", ""},
		{file, text, "certificate\n", ""},
		{file, strings.Replace(text, "192.0.2.1}", "192.0.2.1, caCertContent: mine}", 1), "mine", ""},
		{file + ".none", text, "", "EKSA_REGISTRY_MIRROR_CA"},
	} {
		t.Setenv(mirrorCAVariable, tt.variable)
		got, err := content(tt.text)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("with %q: %q, %v", tt.variable, got, err)
		}
	}
}
