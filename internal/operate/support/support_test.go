package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// canary is part of every secret in these tests.
const canary = "c4n4ry"

func TestTextRedactsSecrets(t *testing.T) {
	for name, tc := range map[string]struct{ in, keeps string }{
		"a private key":              {"a\n-----BEGIN EC PRIVATE KEY-----\n" + canary + "\n-----END EC PRIVATE KEY-----\nafter", "after"},
		"a private key that was cut": {"before\n-----BEGIN PRIVATE KEY-----\n" + canary, "before"},
		"a JSON web token":           {"token is eyJhbGciOiJSUzI1NiJ9." + canary + ".sig and more", "and more"},
		"a bootstrap token":          {"kubeadm join --token abcdef." + canary + "0123456789 10.0.0.1:6443", "10.0.0.1:6443"},
		"a header":                   {"Authorization: Bearer " + canary + "12345 from here", "from here"},
		"a password in an address":   {"GET https://user:" + canary + "@gate:3128/path", "@gate:3128/path"},
		"a field of JSON":            {`{"password":"` + canary + `","user":"creator"}`, `"user":"creator"`},
		"an option":                  {"run --api-key=" + canary + " --verbose", "--verbose"},
		"a field of YAML":            {"token: " + canary + "\nname: billy", "name: billy"},
		"a kubeconfig":               {"client-key-data: " + canary + "==\nserver: https://a", "server: https://a"},
	} {
		t.Run(name, func(t *testing.T) {
			out := Text(tc.in)
			if strings.Contains(out, canary) || !strings.Contains(out, tc.keeps) || !strings.Contains(out, hidden) {
				t.Errorf("%q: got %q", tc.in, out)
			}
		})
	}
	for _, harmless := range []string{"reconciled cluster billy in 3.2 s", "the Secret \"billy-kubeconfig\" is gone", "version 1.36.3"} {
		if got := Text(harmless); got != harmless {
			t.Errorf("%q: got %q, want it unchanged", harmless, got)
		}
	}
}

func TestObjectRedactsSecrets(t *testing.T) {
	for name, in := range map[string]string{
		"a Secret":            "{kind: Secret, data: {key: " + canary + "}, stringData: {key: " + canary + "}}",
		"what was applied":    "{kind: Cluster, metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: '" + canary + "'}}}",
		"values of a chart":   "{kind: HelmChartProxy, spec: {valuesTemplate: 'a: " + canary + "'}}",
		"a package's config":  "{kind: Package, spec: {config: 'a: " + canary + "'}}",
		"a file of a machine": "{kind: KubeadmConfig, spec: {files: [{path: /a, content: " + canary + "}]}}",
		"a field of any kind": "{kind: Any, spec: {deep: [{adminPassword: " + canary + "}], tokens: [" + canary + "]}}",
		"a proxy's address":   "{kind: Cluster, spec: {proxyConfiguration: {httpProxy: 'http://user:" + canary + "@gate:1'}}}",
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(in), &o.Object); err != nil {
				t.Fatal(err)
			}
			Object(o)
			out, err := yaml.Marshal(o.Object)
			if err != nil || strings.Contains(string(out), canary) {
				t.Errorf("got error %v and output\n%s", err, out)
			}
		})
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"kind": "PacketCluster", "spec": map[string]any{"credentialsRef": map[string]any{"name": "packet"}, "secretName": "s"}}}
	Object(kept)
	if name, _, _ := unstructured.NestedString(kept.Object, "spec", "credentialsRef", "name"); name != "packet" {
		t.Errorf("got Secret name %q, want packet", name)
	}
}

func TestCollectWritesObjectsAndLogsWithoutSecrets(t *testing.T) {
	server := kubetest.SharedWithoutWebhooks(t)
	ns := server.Namespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "packet"}, StringData: map[string]string{"PACKET_API_KEY": canary}}
	if _, err := server.Clientset(t).CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	chart := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": addonsv1.GroupVersion.String(), "kind": "HelmChartProxy", "metadata": map[string]any{"name": "cni", "namespace": ns},
		"spec": map[string]any{"clusterSelector": map[string]any{}, "chartName": "cni", "repoURL": "oci://r/charts", "valuesTemplate": "a: " + canary},
	}}
	client, err := dynamic.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(addonsv1.GroupVersion.WithResource("helmchartproxies")).Namespace(ns).Create(t.Context(), chart, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "manager.log"), []byte("old\nBearer "+canary+"12345\nnew\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := append(Files(dir, "logs/plane"), Log{Name: "machines/gone.log", Open: func(context.Context) (io.ReadCloser, error) { return nil, errors.New("the machine is off") }})
	var out bytes.Buffer
	missing, err := Collect(t.Context(), &out, Options{Config: server.Config, Logs: logs, MaxLog: 1 << 20, Facts: map[string]string{"version": "v1"}})
	if err != nil || len(missing) != 1 || missing[0] != "machines/gone.log: the machine is off" {
		t.Fatalf("%v: %q is missing", err, missing)
	}
	files := unpack(t, &out)
	for _, want := range []string{"facts.yaml", "missing.txt", "logs/plane/manager.log", "objects/" + ns + "/secrets/packet.yaml", "objects/" + ns + "/helmchartproxies.addons.cluster.x-k8s.io/cni.yaml"} {
		if _, found := files["support-bundle/"+want]; !found {
			t.Errorf("%s is not in the archive", want)
		}
	}
	for name, text := range files {
		if strings.Contains(text, canary) || strings.Contains(text, "YzRuNHJ5") { // also in base64
			t.Errorf("%s has a secret in it:\n%s", name, text)
		}
	}
	if got := files["support-bundle/logs/plane/manager.log"]; !strings.Contains(got, "old\n") || !strings.Contains(got, "new\n") {
		t.Errorf("the log is %q", got)
	}
	if got := files["support-bundle/objects/"+ns+"/secrets/packet.yaml"]; !strings.Contains(got, "PACKET_API_KEY") {
		t.Errorf("of the Secret there is\n%s", got)
	}
}

func TestCollectListsAnUnavailablePlaneAsMissing(t *testing.T) {
	var out bytes.Buffer
	missing, err := Collect(t.Context(), &out, Options{Config: &rest.Config{Host: "https://" + kubetest.FreeAddress(t)}})
	if err != nil || len(missing) == 0 {
		t.Fatalf("%v: %q is missing", err, missing)
	}
	if files := unpack(t, &out); files["support-bundle/missing.txt"] == "" {
		t.Errorf("the archive has %d files and does not say what is missing", len(files))
	}
}

func TestLastBytesKeepsTheEndOfALog(t *testing.T) {
	var long bytes.Buffer
	for range 100_000 {
		long.WriteString("a line of a log\n")
	}
	long.WriteString("the last line\n")
	got, err := lastBytes(&long, 1000)
	if err != nil || len(got) > 1000 || len(got) < 900 || !bytes.HasPrefix(got, []byte("a line of a log\n")) || !bytes.HasSuffix(got, []byte("the last line\n")) {
		t.Errorf("%v: %d bytes are kept: %q", err, len(got), got[:20])
	}
	got, err = lastBytes(strings.NewReader("one\ntwo\n"), 1000)
	if err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("%v: of a short log %q is kept", err, got)
	}
}

func unpack(t *testing.T, data io.Reader) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(data)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains([]string{"/", "."}, h.Name[:1]) || strings.Contains(h.Name, "..") || h.Mode != 0o600 {
			t.Errorf("file %q has mode %o", h.Name, h.Mode)
		}
		out[h.Name] = string(text)
	}
}
