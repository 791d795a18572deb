package registry_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/fstest"

	"github.com/drover-dev/drover/charts"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/yamltest"
)

func TestInvalidChartsAreRejected(t *testing.T) {
	whole := artifacttest.Chart(t, "hello", "1.0.0", map[string]string{"values.yaml": "a: b\n"})
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // in the checksum
	metadata := func(text string) []byte { return artifacttest.Archive(t, map[string]string{"hello/Chart.yaml": text}) }
	for name, archive := range map[string][]byte{
		"nothing":                          nil,
		"text":                             []byte("apiVersion: v2"),
		"an archive without a chart":       artifacttest.Archive(t, map[string]string{"hello/values.yaml": ""}),
		"a chart at the top":               artifacttest.Archive(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: hello\nversion: 1.0.0\n"}),
		"only a chart inside another":      artifacttest.Archive(t, map[string]string{"a/charts/hello/Chart.yaml": "apiVersion: v2\nname: hello\nversion: 1.0.0\n"}),
		"two charts":                       artifacttest.Archive(t, map[string]string{"hello/Chart.yaml": "apiVersion: v2\nname: hello\nversion: 1.0.0\n", "bye/Chart.yaml": ""}),
		"metadata that is no YAML":         metadata("{"),
		"metadata that is a list":          metadata("[a, b]"),
		"no name":                          metadata("apiVersion: v2\nversion: 1.0.0\n"),
		"a name that is a path":            metadata("apiVersion: v2\nname: ../hello\nversion: 1.0.0\n"),
		"a name in capitals":               artifacttest.Chart(t, "Hello", "1.0.0", nil),
		"another name than its directory":  metadata("apiVersion: v2\nname: bye\nversion: 1.0.0\n"),
		"no version":                       metadata("apiVersion: v2\nname: hello\n"),
		"a version that is none":           metadata("apiVersion: v2\nname: hello\nversion: latest\n"),
		"an unknown API version":           metadata("apiVersion: v9\nname: hello\nversion: 1.0.0\n"),
		"a chart that is cut short":        whole[:len(whole)-20],
		"a chart with a changed byte":      flipped,
		"a chart of which half is missing": whole[:len(whole)/2],
	} {
		if _, err := registry.ReadChart(archive); !errors.Is(err, registry.ErrNotAChart) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := registry.ReadChart(whole)
	must(t, err)
	if c.Name != "hello" || c.Version != "1.0.0" {
		t.Errorf("read %q %q", c.Name, c.Version)
	}
}

func TestPackIsReproducible(t *testing.T) {
	dir := fstest.MapFS{
		"hello/Chart.yaml":           {Data: []byte("apiVersion: v2\nname: hello\nversion: 1.0.0\n")},
		"hello/templates/_help.tpl":  {Data: []byte("{{/* nothing */}}")},
		"hello/templates/empty.yaml": {},
	}
	archive, err := registry.Pack(dir, "hello")
	must(t, err)
	// The digests of published charts must not depend on the compiler or a library.
	if got, want := digestOf(archive), "sha256:8b412f921f315ea8e06914c929349cb707521ac8873e07be8da1b7fe94e7bfb6"; got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if _, err := registry.ReadChart(archive); err != nil {
		t.Error(err)
	}
}

func TestShippedChartsAreServed(t *testing.T) {
	w := newWorld(t, charts.Files)
	archive, err := w.pull("cni", "")
	must(t, err)
	packed, err := registry.Pack(charts.Files, "cni")
	must(t, err)
	if !bytes.Equal(archive, packed) {
		t.Error("another chart came")
	}
	if !bytes.Contains(archive, []byte("cni/templates/_container.tpl")) {
		t.Error("a template is missing")
	}
}

// shipped is a file system with one chart.
func shipped(values string) fstest.MapFS {
	return fstest.MapFS{
		"hello/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: hello\nversion: 1.0.0\n")},
		"hello/values.yaml": {Data: []byte(values)},
	}
}

func TestPreloadIsIdempotent(t *testing.T) {
	old, err := registry.Pack(shipped("a: 1\n"), "hello")
	must(t, err)
	renewed, err := registry.Pack(shipped("a: 2\n"), "hello")
	must(t, err)
	theirs := artifacttest.Chart(t, "hello", "1.0.0", map[string]string{"mine.yaml": ""})
	for name, c := range map[string]struct {
		change func(*world)
		want   []byte
	}{
		"nothing changed":                       {func(*world) {}, old},
		"a Drover with another chart":           {func(w *world) { w.options.Charts = shipped("a: 2\n") }, renewed},
		"content was damaged":                   {func(w *world) { w.damage(digestOf(old)) }, old},
		"content was lost":                      {func(w *world) { must(w.t, os.RemoveAll(w.options.Dir+"/docker/registry/v2/blobs")) }, old},
		"everything was lost":                   {func(w *world) { must(w.t, os.RemoveAll(w.options.Dir)) }, old},
		"a user pushed one instead":             {func(w *world) { w.pushArchive(theirs) }, theirs},
		"and a Drover comes with another chart": {func(w *world) { w.pushArchive(theirs); w.options.Charts = shipped("a: 2\n") }, theirs},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, shipped("a: 1\n"))
			c.change(w)
			w.stop()
			w.start()
			got, err := w.pull("hello", "1.0.0")
			must(t, err)
			if !bytes.Equal(got, c.want) {
				t.Error("another chart came")
			}
			if done := w.collect(0); len(done.Damaged) != 0 {
				t.Errorf("still damaged: %v", done.Damaged)
			}
		})
	}
}

func (w *world) pushArchive(archive []byte) {
	w.t.Helper()
	c, err := registry.ReadChart(archive)
	must(w.t, err)
	_, err = w.client().Push(w.t.Context(), "charts", c)
	must(w.t, err)
}

// A second start writes nothing.
func TestPreloadWritesOnlyMissingCharts(t *testing.T) {
	w := newWorld(t, shipped("a: 1\n"))
	before := w.times()
	w.stop()
	w.start()
	if after := w.times(); after != before {
		t.Errorf("files changed:\n%s\n%s", before, after)
	}
}

func TestOnlyErrorsAreLogged(t *testing.T) {
	w := newWorld(t, nil)
	w.stop()
	var log bytes.Buffer
	w.options.Log = slog.New(slog.NewTextHandler(io.Writer(&log), nil))
	w.start()
	w.push("hello", "1.0.0")
	if _, err := w.pull("bye", "1.0.0"); err == nil {
		t.Fatal("a chart that was not pushed")
	}
	if log.Len() != 0 {
		t.Errorf("a push and a wrong request are logged:\n%s", &log)
	}
	// A directory instead of a file is an error that no client can cause.
	must(t, os.RemoveAll(w.options.Dir+"/docker/registry/v2/repositories/charts/hello/_manifests/tags/1.0.0/current/link"))
	must(t, os.Mkdir(w.options.Dir+"/docker/registry/v2/repositories/charts/hello/_manifests/tags/1.0.0/current/link", 0o700))
	if _, err := w.pull("hello", "1.0.0"); err == nil {
		t.Fatal("a tag that can't be read")
	}
	w.stop()
	if !bytes.Contains(log.Bytes(), []byte("charts/hello")) {
		t.Errorf("a problem of the registry is not logged:\n%s", &log)
	}
}

func TestReadChartRejectsMetadataThatGrows(t *testing.T) {
	archive := artifacttest.Chart(t, "app", "1.0.0", map[string]string{"Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n" + yamltest.Text()})
	yamltest.Attack(t, func() error { _, err := registry.ReadChart(archive); return err })
}
