package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/yamltest"
)

const chartFile = "apiVersion: v2\nname: app\nversion: 1.0.0\n"

// TestHostileArchivesAreNotLoaded packs charts that take many times the memory of their archive.
func TestHostileArchivesAreNotLoaded(t *testing.T) {
	structure := "a:\n" + strings.Repeat("-\n", safeyaml.MaxValues+1)
	packed := string(artifacttest.Chart(t, "c", "1.0.0", map[string]string{
		"a": strings.Repeat("x", 4<<20), "b": strings.Repeat("x", 4<<20), "c": strings.Repeat("x", 4<<20),
	}))
	nested, windows := map[string]string{}, map[string]string{}
	for n := range 8 {
		nested[fmt.Sprintf("app/charts/c%d.tgz", n)] = packed
		windows[fmt.Sprintf(`app\charts\c%d.tgz`, n)] = packed
	}
	for name, files := range map[string]map[string]string{
		"values":                       {"app/values.yaml": structure},
		"values by a path of Windows":  {`app\values.yaml`: structure},
		"values by an unclean path":    {"app/values.yaml/.": structure},
		"values by a detour":           {"app/x/../values.yaml": structure},
		"values of a dependency":       {"app/charts/a/Chart.yaml": chartFile, "app/charts/a/values.yaml": structure},
		"values of many":               {"app/values.yaml": structure[:safeyaml.MaxValues], "app/charts/a/Chart.yaml": chartFile, "app/charts/a/values.yaml": structure[:safeyaml.MaxValues], "app/requirements.yaml": structure[:safeyaml.MaxValues]},
		"nested archives":              nested,
		"nested archives of Windows":   windows,
		"nested directories":           {"app/" + strings.Repeat("charts/a/", maxNested) + "Chart.yaml": chartFile},
		"aliases in values":            {"app/values.yaml": yamltest.Text()},
		"aliases in a second document": {"app/values.yaml": "a: b\n---\n" + yamltest.Text()},
		"aliases in metadata":          {"app/Chart.yaml": chartFile + yamltest.Text()},
		"aliases in a lock":            {"app/Chart.lock": yamltest.Text()},
		"aliases with two marks":       {"app/values.yaml": "\ufeff\xff\xfe" + strings.Join(strings.Split(yamltest.Text(), ""), "\x00") + "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			if files["app/Chart.yaml"] == "" {
				files["app/Chart.yaml"] = chartFile
			}
			all := &archives{by: map[string][]byte{"": artifacttest.Archive(t, files)}}
			yamltest.Attack(t, func() error {
				_, err := newCharts(all).load(t.Context(), artifact.Ref{Name: "app"}, artifact.Resolved{})
				return err
			})
		})
	}
}

func TestHostileManifestsAreNotParsed(t *testing.T) {
	for name, text := range map[string]string{
		"structure":                    "a:\n" + strings.Repeat("-\n", safeyaml.MaxValues+1),
		"aliases":                      "kind: ConfigMap\nmetadata: {name: a}\n" + yamltest.Text(),
		"aliases in a second document": "kind: ConfigMap\nmetadata: {name: a}\n---\n" + yamltest.Text(),
	} {
		t.Run(name, func(t *testing.T) {
			yamltest.Attack(t, func() error { _, err := parse(text); return err })
		})
	}
}

// FuzzCheckArchive checks that limits count every file that Helm parses, whatever its name is.
func FuzzCheckArchive(f *testing.F) {
	sub := string(packFiles(f, file{"sub/Chart.yaml", strings.ReplaceAll(chartFile, "app", "sub")}, file{"sub/values.yaml", "a: b"}))
	for _, seed := range [][4]string{
		{"app/values.yaml", "a: 1", "app/Chart.lock", "digest: x"},
		{`app\values.yaml`, "a: 1", "app/templates/a.yaml", "b"},
		{"app/values.yaml/.", "a: 1", "app//values.yaml", "a: 2"},
		{"app/charts/a/Chart.yaml", chartFile, `app\charts\a\values.yaml`, "a: 1"},
		{"app/charts/sub.tgz", sub, "app/charts/_x.tgz", "x"},
		{`app\charts\sub.tgz`, sub, "app/./charts/../values.yaml", "\ufeffa: 1"},
		{"Chart.yaml", "x", "../app/values.yaml", "x"},
		{"app/charts/README", "x", "/values.yaml", "a: 1"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, first, firstText, second, secondText string) {
		data := packFiles(t, file{"app/Chart.yaml", chartFile}, file{first, firstText}, file{second, secondText})
		var c chartContent
		err := c.add(bytes.NewReader(data), maxNested)
		chart, failed := loader.LoadArchive(bytes.NewReader(data))
		if err != nil || failed != nil || data == nil {
			return
		}
		if want := parsedBytes(chart); c.metadata.Len() < want {
			t.Errorf("counted %d bytes of metadata, Helm parsed %d", c.metadata.Len(), want)
		}
		files, err := archive.LoadArchiveFiles(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, loaded := range files {
			if !slices.Contains([]string{"Chart.yaml", cleanName(first), cleanName(second)}, loaded.Name) {
				t.Errorf("Helm loads %q; %q and %q are checked", loaded.Name, cleanName(first), cleanName(second))
			}
		}
	})
}

// packFiles returns nil if a name is impossible.
func packFiles(t testing.TB, files ...file) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	out := tar.NewWriter(compressed)
	for _, f := range files {
		if out.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o644, Size: int64(len(f.Content))}) != nil {
			return nil
		}
		_, _ = out.Write([]byte(f.Content)) // A directory has no content.
	}
	if out.Close() != nil || compressed.Close() != nil {
		return nil
	}
	return packed.Bytes()
}

// parsedBytes returns the size of the files that Helm has parsed.
func parsedBytes(chart *chartv2.Chart) int {
	size := 0
	for _, f := range chart.Raw {
		if isMetadata(f.Name) {
			size += len(f.Data)
		}
	}
	for _, d := range chart.Dependencies() {
		size += parsedBytes(d)
	}
	return size
}

// storeText returns the content of a record as Helm stores it.
func storeText(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	_, err := zipper.Write([]byte(text))
	if err := errors.Join(err, zipper.Close()); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(out.Bytes()))
}

func TestHostileRecordsAreNotDecoded(t *testing.T) {
	data := storeText(t, `{"info":{},"config":{"a":[`+strings.Repeat("[],", safeyaml.MaxValues)+`0]}}`)
	yamltest.Attack(t, func() error { _, err := unpack(data); return err })
}

// FuzzDecodeRecord checks that every record is rejected or can be stored again.
func FuzzDecodeRecord(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","info":{"status":"deployed"},"manifest":"kind: A\nmetadata: {name: b}","hooks":[{"events":["x"]}]}`, `{"info":{}}`, `{}`, `[]`,
		`{"info":{"first_deployed":""},"chart":{"metadata":null,"templates":[null]},"config":{"a":1e999}}`,
	} {
		f.Add(storeText(f, seed))
		f.Add([]byte(base64.StdEncoding.EncodeToString([]byte(seed))))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := decode(&corev1.Secret{Data: map[string][]byte{secretKey: data}})
		if err != nil {
			return
		}
		_, _ = parse(rec.Manifest)
		describe(entry{}, rec)
		secret, err := encode(rec, modifiedLabel)
		if err != nil {
			t.Fatalf("it was read, and can't be stored: %v", err)
		}
		if _, err := decode(secret); err != nil {
			t.Errorf("it was stored, and can't be read: %v", err)
		}
	})
}
