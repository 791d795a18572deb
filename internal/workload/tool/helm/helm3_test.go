package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/workload/tool"
)

// third is a release as Helm 3 leaves it on a cluster. Neither the code under test nor Helm 4
// creates any of it: the record is written field by field, and the objects are created without
// server-side apply.
type third struct {
	*bench

	name      string
	templates map[string]string
	values    map[string]any
	manifests []string
	resources []schema.GroupVersionResource
}

const thirdConfig = `apiVersion: v1
kind: ConfigMap
metadata:
  name: '{{ .Release.Name }}'
data:
  greeting: '{{ .Values.greeting }}'
  {{- if .Values.extra }}
  extra: '{{ .Values.extra }}'
  {{- end }}
`

const thirdService = `apiVersion: v1
kind: Service
metadata:
  name: '{{ .Release.Name }}'
spec:
  clusterIP: None
  ports:
  - port: 80
  selector:
    app: x
`

func newThird(b *bench, name string) *third {
	fill := strings.NewReplacer("{{ .Release.Name }}", name, "{{ .Values.greeting }}", "hi", "{{ .Values.extra }}", "more",
		"\n  {{- if .Values.extra }}", "", "\n  {{- end }}", "")
	return &third{
		bench: b, name: name,
		templates: map[string]string{"templates/config.yaml": thirdConfig, "templates/service.yaml": thirdService, "templates/NOTES.txt": "Say {{ .Values.greeting }}.\n"},
		values:    map[string]any{"greeting": "hi", "extra": "more"},
		manifests: []string{"# Source: app/templates/config.yaml\n" + fill.Replace(thirdConfig), "# Source: app/templates/service.yaml\n" + fill.Replace(thirdService)},
		resources: []schema.GroupVersionResource{corev1.SchemeGroupVersion.WithResource("configmaps"), corev1.SchemeGroupVersion.WithResource("services")},
	}
}

// install creates the objects, as field manager helm, and the record.
func (h *third) install(t *testing.T) {
	t.Helper()
	for i, manifest := range h.manifests {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		object.SetAnnotations(map[string]string{"meta.helm.sh/release-name": h.name, "meta.helm.sh/release-namespace": h.namespace})
		_, err := h.cluster.Dynamic().Resource(h.resources[i]).Namespace(h.namespace).Create(t.Context(), object, metav1.CreateOptions{FieldManager: "helm"})
		if err != nil {
			t.Fatal(err)
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1." + h.name + ".v1", Labels: map[string]string{
			"name": h.name, "owner": "helm", "status": "deployed", "version": "1", "modifiedAt": strconv.FormatInt(time.Now().Unix(), 10),
		}},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": h.record(t)},
	}
	if _, err := h.server.Clientset(t).CoreV1().Secrets(h.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// record is compressed JSON in base64.
func (h *third) record(t *testing.T) []byte {
	t.Helper()
	var templates []map[string]any
	for _, name := range slices.Sorted(maps.Keys(h.templates)) {
		templates = append(templates, map[string]any{"name": name, "data": []byte(h.templates[name])})
	}
	const at = "2024-05-06T07:08:09.123456789+02:00"
	text, err := json.Marshal(map[string]any{
		"name": h.name,
		"info": map[string]any{
			"first_deployed": at, "last_deployed": at, "deleted": "", "description": "Install complete", "status": "deployed", "notes": "Say hi.\n",
		},
		"chart": map[string]any{
			"metadata": map[string]any{"name": "app", "version": "1.0.0", "apiVersion": "v2"},
			"lock":     nil, "templates": templates, "values": map[string]any{"greeting": "hello"}, "schema": nil, "files": []any{},
		},
		"config":   h.values,
		"manifest": "---\n" + strings.Join(h.manifests, "---\n"),
		"version":  1, "namespace": h.namespace,
	})
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	zipper, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if _, err := zipper.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := zipper.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// want is the desired state of the release.
func (h *third) want(t *testing.T) tool.Want {
	t.Helper()
	want := h.bench.want(h.name, h.put(t, "1.0.0", with(h.templates, map[string]string{"values.yaml": "greeting: hello\n"})))
	want.Values = h.values
	return want
}

// live returns the objects and the record with their versions.
func (h *third) live(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, r := range append(h.resources, corev1.SchemeGroupVersion.WithResource("secrets")) {
		list, err := h.cluster.Dynamic().Resource(r).Namespace(h.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			out = append(out, o.GetKind()+" "+o.GetName()+" "+o.GetResourceVersion())
		}
	}
	return out
}

func TestHelm3ReleaseIsAdopted(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	h := newThird(b, "third")
	h.install(t)
	want := h.want(t)
	b.until(t, "the watch tells of the release", func() bool {
		s, _ := b.Observe(b.cluster, want.ID)
		return s.Status == tool.Deployed
	})
	before := h.live(t)
	b.wire.Restart()
	if state := b.mustApply(t, want); state.Revision != 1 || state.Status != tool.Deployed {
		t.Fatalf("adopted as %+v, want revision 1", state)
	}
	for _, request := range b.wire.Requests() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("adopting it took the request %s", request)
		}
	}
	if diff := cmp.Diff(before, h.live(t)); diff != "" {
		t.Errorf("adopting it changed objects (-before +after):\n%s", diff)
	}

	t.Log("other values, without one that was there")
	want.Values = map[string]any{"greeting": "servus"}
	b.observed(t, want, b.mustApply(t, want))
	if diff := cmp.Diff([]string{"1 superseded", "2 deployed"}, b.statuses(t, h.name)); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	config, err := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), h.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"greeting": "servus"}, config.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	for _, m := range config.ManagedFields {
		if m.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("fields still belong to %s by %s", m.Manager, m.Operation)
		}
	}
	if err := b.Remove(t.Context(), b.cluster, want); err != nil {
		t.Fatal(err)
	}
	if left := slices.DeleteFunc(h.live(t), func(o string) bool { return !strings.Contains(o, " "+h.name+" ") && !strings.Contains(o, "sh.helm") }); len(left) > 0 {
		t.Errorf("left after removal: %v", left)
	}
}
