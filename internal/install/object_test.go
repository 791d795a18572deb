package install

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/config"
)

func TestObjectsIncludeTheNamespace(t *testing.T) {
	objects, err := Options{More: []config.Manifest{{Name: "more", Data: []byte("kind: Service\nmetadata: {name: more, namespace: drover-system}\n")}}}.objects()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range objects {
		if seen[o.String()] {
			t.Errorf("got duplicate object %s", o)
		}
		seen[o.String()] = true
		if o.last != (o.name == "more") {
			t.Errorf("%s: last is %t", o, o.last)
		}
	}
	for _, want := range []string{"namespaces/drover-system", "clusterroles/drover-manager", "services/more", "customresourcedefinitions/clusters.cluster.x-k8s.io"} {
		if !seen[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestIdentify(t *testing.T) {
	for name, tt := range map[string]struct{ manifest, want, problem string }{
		"an object":          {manifest: "kind: Role\nmetadata: {name: a, namespace: b}\n", want: "roles/a"},
		"a kind of others":   {manifest: "kind: Pod\nmetadata: {name: a}\n", problem: `unknown kind "Pod"`},
		"a broken manifest":  {manifest: "kind: [", problem: `decoding manifest "file"`},
		"an empty manifest":  {manifest: "", problem: `unknown kind ""`},
		"a cluster-wide one": {manifest: "kind: ClusterRole\nmetadata: {name: a}\n", want: "clusterroles/a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Options{}.identify(config.Manifest{Name: "file", Data: []byte(tt.manifest)})
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("got error %v, want %q", err, tt.problem)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestHashDependsOnManifestAndURL(t *testing.T) {
	base := Options{}.hash([]byte("a"))
	for name, other := range map[string]string{
		"another manifest": Options{}.hash([]byte("b")),
		"another URL":      Options{WebhookURL: "https://127.0.0.1:9443"}.hash([]byte("a")),
	} {
		if other == base {
			t.Errorf("%s has the same hash", name)
		}
	}
	if again := (Options{Version: "v1.2.3"}).hash([]byte("a")); again != base {
		t.Error("another version has another hash, so every upgrade would write every object")
	}
}

func TestRender(t *testing.T) {
	const manifest = `kind: ValidatingWebhookConfiguration
metadata: {name: a, annotations: {keep: it}}
webhooks:
- name: one
  clientConfig: {service: {name: s, namespace: ns, path: /validate}}
- name: two
  clientConfig: {url: "https://elsewhere"}
`
	for name, tt := range map[string]struct {
		url   string
		first map[string]any
	}{
		"through the Service": {"", map[string]any{"service": map[string]any{"name": "s", "namespace": "ns", "path": "/validate"}}},
		"at a URL":            {"https://127.0.0.1:9443/", map[string]any{"url": "https://127.0.0.1:9443/validate"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{WebhookURL: tt.url, Version: "v0.1.0"}
			body, err := o.render(object{name: "a", manifest: []byte(manifest), hash: "h"})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Metadata struct{ Annotations map[string]string }
				Webhooks []struct{ ClientConfig map[string]any }
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			annotations := map[string]string{"keep": "it", HashAnnotation: "h", VersionAnnotation: "v0.1.0"}
			if diff := cmp.Diff(annotations, got.Metadata.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.first, got.Webhooks[0].ClientConfig); diff != "" {
				t.Errorf("first webhook (-want +got):\n%s", diff)
			}
			if got.Webhooks[1].ClientConfig["url"] != "https://elsewhere" {
				t.Errorf("second webhook is called at %v", got.Webhooks[1].ClientConfig)
			}
		})
	}
}

func TestNewerErrorNamesBothVersions(t *testing.T) {
	err := &NewerError{Object: "clusterroles/a", Installed: "v0.1.0-dev.9+gaaaaaaa", Own: "v0.1.0-dev.8+gbbbbbbb"}
	want := "clusterroles/a was installed by Drover v0.1.0-dev.9+gaaaaaaa, which is newer than this v0.1.0-dev.8+gbbbbbbb: " +
		"use Drover v0.1.0-dev.9+gaaaaaaa or later with this cluster"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
