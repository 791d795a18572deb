package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestManifestsRoundTrip decodes and encodes existing manifests: nothing may be lost or renamed,
// least of all explicit false and zero values.
func TestManifestsRoundTrip(t *testing.T) {
	const manifest = `
clusterSelector: {matchLabels: {cni: calico}}
chartName: tigera-operator
repoURL: https://charts.example.com
releaseName: calico
namespace: tigera-operator
version: v3.30.0
valuesTemplate: "installation: {enabled: true}"
reconcileStrategy: InstallOnce
options:
  options: true
  disableHooks: true
  waitForJobs: true
  timeout: 5m0s
  enableClientCache: false
  takeOwnership: true
  install: {createNamespace: false, includeCRDs: true}
  upgrade: {maxHistory: 0, force: true}
  uninstall: {keepHistory: true, description: gone}
credentials: {secret: {name: login, namespace: ops}, key: config.json}
tlsConfig: {caSecret: {name: ca}, insecureSkipTLSVerify: true}
`
	var want map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &want); err != nil {
		t.Fatal(err)
	}
	var spec HelmChartProxySpec
	if err := yaml.UnmarshalStrict([]byte(manifest), &spec); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read and written again (-want +got):\n%s", diff)
	}
}
