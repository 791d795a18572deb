package manifests

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

func TestNumbersInTextHaveNoExponent(t *testing.T) {
	v := values{substitute: map[string]any{"BIG": int64(10000000), "SMALL": 0.000001, "HALF": 1.5, "YES": true, "NAME": "größe", "MAP": map[string]any{"a": 1}}}
	for in, want := range map[string]any{
		"n=${BIG}":         "n=10000000",
		"n=${SMALL}":       "n=0.000001",
		"n=${HALF}":        "n=1.5",
		"${YES}-${NAME}":   "true-größe",
		"${BIG}":           int64(10000000),
		"$${BIG}":          "${BIG}",
		"a $${BIG} b":      "a ${BIG} b",
		"${NONE:=5}":       int64(5),
		"x${NONE:=5}":      "x5",
		"${NONE:=a: b}":    "a: b",
		"${NONE:=}":        "",
		"$BIG {BIG} ${1A}": "$BIG {BIG} ${1A}",
		"${MAP}":           map[string]any{"a": int64(1)},
	} {
		got, err := v.text(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
	for in, want := range map[string]string{
		"${NONE}":   `variable "NONE" has no value and no default; add it to substitute`,
		"a ${MAP}":  `variable "MAP": a map or list can only replace an entire string`,
		"a ${NONE}": `variable "NONE" has no value and no default; add it to substitute`,
	} {
		if _, err := v.text(in); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
	}
}

func TestSettingsOfAPackage(t *testing.T) {
	for name, tt := range map[string]struct {
		in   map[string]any
		want values
		err  string
	}{
		"none":           {nil, values{}, ""},
		"both":           {map[string]any{"path": "a", "substitute": map[string]any{"A": 1}}, values{path: "a", substitute: map[string]any{"A": 1}}, ""},
		"null":           {map[string]any{"path": nil, "substitute": nil}, values{}, ""},
		"another value":  {map[string]any{"replicas": 3}, values{}, `unknown value "replicas"; manifests support path and substitute`},
		"a wrong path":   {map[string]any{"path": 7}, values{}, `value "path" must be a string`},
		"no map of them": {map[string]any{"substitute": "x"}, values{}, `value "substitute" must be a map`},
	} {
		got, err := parseValues(tt.in)
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: error %v, want %q", name, err, tt.err)
		}
		if err == nil {
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(values{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestDirectoryOfAPackage(t *testing.T) {
	files := func(names ...string) map[string][]byte {
		out := map[string][]byte{}
		for _, n := range names {
			out[n] = nil
		}
		return out
	}
	for name, tt := range map[string]struct {
		files     map[string][]byte
		dir, want string
		missing   bool
	}{
		"the root":                           {files("a.yaml"), "", "", false},
		"a directory":                        {files("a/x.yaml", "b/x.yaml"), "a", "a", false},
		"cleaned":                            {files("a/b/x.yaml", "c.yaml"), "/a/./b/", "a/b", false},
		"no way out":                         {files("a/x.yaml", "c.yaml"), "../../a", "a", false},
		"below the only directory":           {files("repo-1.0/a/x.yaml", "repo-1.0/README"), "a", "repo-1.0/a", false},
		"the only directory itself":          {files("repo-1.0/x.yaml"), "", "repo-1.0", false},
		"an exact match wins":                {files("a/a/x.yaml"), "a", "a", false},
		"a part of a name":                   {files("ab/x.yaml", "c.yaml"), "a", "", true},
		"a file":                             {files("a", "c.yaml"), "a", "", true},
		"an empty archive has only its root": {files(), "", "", false},
	} {
		got, err := packageDir(tt.files, tt.dir)
		if got != tt.want || (err != nil) != tt.missing {
			t.Errorf("%s: %q, error %v; want %q", name, got, err, tt.want)
		}
	}
}

func TestManifestFiles(t *testing.T) {
	for name, want := range map[string]bool{
		"a.yaml": true, "/a/b.yml": true, "c.json": true, "README.md": false, ".hidden.yaml": false, "/.git/x.yaml": false, "/a/.b/c.yaml": false, "yaml": false, "": false,
	} {
		if got := isManifest(name); got != want {
			t.Errorf("%q is a manifest: %t", name, got)
		}
	}
}

func TestDocumentsOfAFile(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
		err  string
	}{
		"none":                {"", nil, ""},
		"comments":            {"# a\n---\n# b\n", nil, ""},
		"two":                 {"{apiVersion: v1, kind: A, metadata: {name: x}}\n---\n{apiVersion: v1, kind: B, metadata: {name: z}}\n", []string{"A x", "B z"}, ""},
		"a list":              {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: x}}]}", []string{"A x"}, ""},
		"a list without name": {"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A}]}", nil, "A has no name"},
		"no name":             {"{apiVersion: v1, kind: A}", nil, "A has no name"},
		"no kind":             {"{apiVersion: v1, password: hunter22}", nil, "document has no apiVersion and kind"},
		"no apiVersion":       {"{kind: A, metadata: {name: x}}", nil, "document has no apiVersion and kind"},
		"a scalar":            {"hunter22", nil, "document has no apiVersion and kind"},
		"broken":              {"a: {hunter22", nil, "invalid YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := parse([]byte(tt.text))
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			var got []string
			for _, u := range found {
				got = append(got, u.GetKind()+" "+u.GetName())
			}
			if diff := cmp.Diff(tt.want, got); err == nil && diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// zipped returns an archive with these entries.
func zipped(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchivesThatAreRejected(t *testing.T) {
	for want, archive := range map[string][]byte{
		"not a gzip archive":                       []byte("PK"),
		"corrupt archive":                          gzipOf(t, "not a tar archive, but long enough to be taken for the header of one"+strings.Repeat("x", 600)),
		`"link" is not a regular file`:             zipped(t, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}),
		`"/etc/passwd" points outside the archive`: zipped(t, tar.Header{Name: "/etc/passwd", Typeflag: tar.TypeReg}),
		`"a/../../b" points outside the archive`:   zipped(t, tar.Header{Name: "a/../../b", Typeflag: tar.TypeReg}),
	} {
		if _, err := unpack(archive); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	files, err := unpack(zipped(t, tar.Header{Name: "dir/", Typeflag: tar.TypeDir}, tar.Header{Name: "./dir/a.yaml", Typeflag: tar.TypeReg}))
	if _, found := files["dir/a.yaml"]; err != nil || !found || len(files) != 1 {
		t.Errorf("files %v, error %v", files, err)
	}
}

func gzipOf(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReferencesOutOfAnArchive(t *testing.T) {
	for name, tt := range map[string]struct{ kustomization, want string }{
		"a file":           {"resources: [a.yaml]", ""},
		"a directory":      {"resources: [base]", ""},
		"an inline patch":  {"patchesStrategicMerge: [\"kind: A\\nmetadata: {}\"]", ""},
		"generated files":  {"configMapGenerator: [{files: [k=a.yaml], envs: [a.yaml]}]", ""},
		"a URL":            {"resources: ['https://example.com/a.yaml']", "which is not in the archive"},
		"a repository":     {"resources: ['github.com/a/b']", "which is not in the archive"},
		"an SSH address":   {"bases: ['git@example.com:a/b']", "which is not in the archive"},
		"an absolute path": {"crds: [/a.yaml]", "which is not in the archive"},
		"a missing file":   {"patches: [{path: b.yaml}]", "which is not in the archive"},
		"no kustomization": {"components: [plain]", `no kustomization in "/plain"`},
		"a plugin":         {"generators: [a.yaml]", "which are not supported"},
		"a chart":          {"helmCharts: [{name: a}]", "which are not supported"},
		"broken YAML":      {"resources: {", `invalid kustomization in "/"`},
		"itself":           {"resources: [base/..]", ""},
	} {
		files := map[string][]byte{
			"kustomization.yaml": []byte(tt.kustomization), "a.yaml": nil, "base/kustomization.yml": []byte("resources: [../a.yaml]"), "plain/x.yaml": nil,
		}
		err := checker{files: files, seen: map[string]bool{}}.check("")
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
}

func TestReleaseNames(t *testing.T) {
	for name, want := range map[string]bool{
		"web": true, "web.1": true, strings.Repeat("a", 53): true, "": false, "Web": false, "web_1": false, strings.Repeat("a", 54): false, "ü": false,
	} {
		var terminal *tool.TerminalError
		if err := checkName(name); (err == nil) != want || err != nil && !errors.As(err, &terminal) {
			t.Errorf("%q: got error %v, want a %T", name, err, terminal)
		}
	}
}

func thing(kind, namespace, name string) map[string]any {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u.Object
}

func TestRecordsRoundTrip(t *testing.T) {
	r := records{id: tool.ID{Namespace: "shop", Name: "web"}}
	rec := &record{
		revision: revision{Number: 3, Package: "hello", Version: "1.0.0", Updated: time.Unix(1000, 0).UTC(), Fingerprint: "f", Objects: []map[string]any{thing("ConfigMap", "shop", "a")}},
		Status:   tool.Deployed, Message: "fine", Before: []reference{{"v1", "Secret", "shop", "b"}}, Again: 1,
	}
	secret, err := r.encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	if secret.Name != "drover.addon.web" || secret.Type != recordType || secret.Labels[revisionLabel] != "3" || secret.Labels[statusLabel] != tool.Deployed {
		t.Errorf("secret %+v", secret.ObjectMeta)
	}
	secret.ResourceVersion = "7"
	got := decode(secret)
	if got.state().Stamp != "3/7" || got.broken {
		t.Errorf("state %+v", got.state())
	}
	got.version = ""
	if diff := cmp.Diff(rec, got, cmp.AllowUnexported(record{})); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

func TestUnreadableRecordsFallBackToLabels(t *testing.T) {
	for name, data := range map[string][]byte{"nothing": nil, "no gzip": []byte("x"), "no JSON": gzipOf(t, "{")} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Labels: map[string]string{revisionLabel: "4"}}, Data: map[string][]byte{recordKey: data}}
		if got := decode(secret); !got.broken || got.Number != 4 || got.Status != tool.Failed || got.version != "7" {
			t.Errorf("%s: record %+v", name, got)
		}
	}
}

func TestSuccessorsRememberWhatMayBeLeft(t *testing.T) {
	deployed := &record{revision: revision{Number: 2, Objects: []map[string]any{thing("A", "n", "x")}}, Status: tool.Deployed, version: "7"}
	next := &record{}
	next.succeed(deployed)
	if next.Number != 3 || next.version != "7" || next.Last == nil || next.Last.Number != 2 {
		t.Errorf("record %+v", next)
	}
	failed := &record{revision: revision{Number: 3, Objects: []map[string]any{thing("B", "n", "y"), thing("A", "n", "x")}}, Status: tool.Failed, Before: next.Before, Last: next.Last}
	after := &record{}
	after.succeed(failed)
	want := []reference{{"v1", "A", "n", "x"}, {"v1", "B", "n", "y"}}
	if diff := cmp.Diff(want, after.Before); diff != "" {
		t.Errorf("leftovers (-want +got):\n%s", diff)
	}
	if after.Last.Number != 2 {
		t.Errorf("a failed revision is the last good one: %+v", after.Last)
	}
	if all := after.leftovers(); len(all) != 2 || all[0].Title() != `A "n/x"` {
		t.Errorf("leftovers %v", all)
	}
}

func TestOwnersOfObjects(t *testing.T) {
	w := &writer{objects.Writer{Want: tool.Want{ID: tool.ID{Namespace: "shop", Name: "web"}}}}
	live := func(labels, annotations map[string]string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetLabels(labels)
		u.SetAnnotations(annotations)
		return u
	}
	drover := map[string]string{tool.OwnerLabel: tool.OwnerDrover}
	for name, tt := range map[string]struct {
		live          *unstructured.Unstructured
		takeOwnership bool
		want          string
	}{
		"ours":                       {live(drover, map[string]string{tool.NameAnnotation: "web", tool.NamespaceAnnotation: "shop"}), false, ""},
		"another installation's":     {live(drover, map[string]string{tool.NameAnnotation: "db", tool.NamespaceAnnotation: "shop"}), true, `owned by installation "shop/db"`},
		"Helm's":                     {live(nil, map[string]string{helmName: "db", helmNamespace: "data"}), true, `owned by Helm release "data/db"`},
		"nobody's":                   {live(nil, nil), false, "set takeOwnership to adopt it"},
		"nobody's, to be adopted":    {live(nil, nil), true, ""},
		"annotations without labels": {live(nil, map[string]string{tool.NameAnnotation: "web", tool.NamespaceAnnotation: "shop"}), false, "set takeOwnership to adopt it"},
	} {
		w.Want.Options.TakeOwnership = tt.takeOwnership
		err := w.checkOwner(&object{}, tt.live)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", name, err, tt.want)
		}
	}
	if err := w.checkOwner(&object{owned: true}, live(nil, nil)); err != nil {
		t.Errorf("an object that is known to be ours: %v", err)
	}
	claimed := &object{Object: objects.Object{Unstructured: live(map[string]string{tool.NameLabel: "record", "kept": "x"}, nil)}}
	w.claim(claimed)
	if !w.owns(claimed) || claimed.GetLabels()[tool.NameLabel] != "" || claimed.GetLabels()["kept"] != "x" {
		t.Errorf("labels %v", claimed.GetLabels())
	}
}

func TestKeptObjects(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "True": true, "false": false, "": false, "yes": false} {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetAnnotations(map[string]string{KeepAnnotation: value})
		if got := kept(u); got != want {
			t.Errorf("%q: kept: %t", value, got)
		}
	}
}

func TestFingerprintsDependOnContentOnly(t *testing.T) {
	want := func(digest string, values map[string]any) tool.Want {
		w := tool.Want{Values: values}
		w.Resolved.Digest = digest
		return w
	}
	base := fingerprint(want("d", map[string]any{"a": 1, "b": 2}))
	if base != fingerprint(want("d", map[string]any{"b": 2, "a": 1})) {
		t.Error("the order of values changes the fingerprint")
	}
	if base == fingerprint(want("e", map[string]any{"a": 1, "b": 2})) || base == fingerprint(want("d", map[string]any{"a": 1})) {
		t.Error("another archive or other values have the same fingerprint")
	}
}
