package transfer_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func copyTo(t *testing.T, from transfer.Source, to transfer.Target) (*transfer.Copied, error) {
	t.Helper()
	return (&transfer.Copier{From: from, To: to, Repository: repository}).Copy(t.Context(), fetch(t, from))
}

func TestCopyBetweenRegistriesSendsEachBlobOnce(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	to := open(t, newOwn(t))
	first, err := copyTo(t, open(t, v.options), to)
	must(t, err)
	v.complete(t, to)
	if diff := cmp.Diff([]string{tag, latest}, first.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if first.SentBytes != first.Bytes || first.Bytes < 30_000 || len(first.Items) != 5 {
		t.Errorf("%d of %d bytes were sent, in %d parts", first.SentBytes, first.Bytes, len(first.Items))
	}
	second, err := copyTo(t, open(t, v.options), to)
	must(t, err)
	if second.SentBytes != 0 || second.Bytes != first.Bytes {
		t.Errorf("the second time, %d of %d bytes were sent", second.SentBytes, second.Bytes)
	}
}

func TestBundleIsCopiedThroughAnArchive(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	file := filepath.Join(t.TempDir(), "site.tar")
	w, err := transfer.CreateArchive(file)
	must(t, err)
	_, err = copyTo(t, open(t, v.options), w)
	must(t, err)
	must(t, w.Finish())
	checkLayout(t, file)

	a, err := transfer.OpenArchive(file)
	must(t, err)
	defer a.Close()
	want := []transfer.Ref{{Kind: transfer.KindBundle, Repository: repository, Tag: tag, Digest: fetch(t, a).Ref.Digest}}
	if diff := cmp.Diff(want, a.Bundles()); diff != "" {
		t.Errorf("bundles (-want +got):\n%s", diff)
	}
	v.complete(t, a)
	to := open(t, newOwn(t))
	_, err = copyTo(t, a, to)
	must(t, err)
	v.complete(t, to)
	if _, err := transfer.CreateArchive(file); !errors.Is(err, transfer.ErrExists) {
		t.Errorf("existing archive: got error %v", err)
	}
}

// checkLayout reads the unpacked archive with another library.
func checkLayout(t *testing.T, file string) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	for entries := tar.NewReader(f); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		content, err := io.ReadAll(entries)
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, entry.Name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, entry.Name), content, 0o600))
	}
	l, err := layout.FromPath(dir)
	must(t, err)
	index, err := l.ImageIndex()
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != 5 {
		t.Errorf("%d entries in the index, want 5", len(manifest.Manifests))
	}
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() {
			continue
		}
		image, err := index.Image(d.Digest)
		must(t, err)
		layers, err := image.Layers()
		must(t, err)
		if len(layers) == 0 {
			t.Errorf("%s has no layers", d.Digest)
		}
	}
}

// Wherever the writer was killed, the resumed archive is the same.
func TestInterruptedArchiveIsResumed(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	from := open(t, v.options)
	write := func(file string) *transfer.Copied {
		w, err := transfer.CreateArchive(file)
		must(t, err)
		done, err := copyTo(t, from, w)
		must(t, err)
		must(t, w.Finish())
		return done
	}
	whole := filepath.Join(t.TempDir(), "whole.tar")
	all := write(whole)
	content, err := os.ReadFile(whole)
	must(t, err)
	for _, size := range []int{0, 1, 511, 512, 600, len(content) / 3, len(content) / 2, len(content) - 2000, len(content) - 1} {
		file := filepath.Join(t.TempDir(), "cut.tar")
		must(t, os.WriteFile(file+".partial", content[:size], 0o600))
		done := write(file)
		a, err := transfer.OpenArchive(file)
		must(t, err)
		v.complete(t, a)
		must(t, a.Close())
		if size > len(content)/3 && done.SentBytes >= all.SentBytes {
			t.Errorf("after %d of %d bytes, everything was sent again", size, len(content))
		}
	}
}

func TestFailedCopyIsResumed(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	front := newLiar(t, v.Host)
	options := v.options
	options.Address = front.host
	to := newOwn(t)
	var count atomic.Int32
	broken := func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") && count.Add(1) > 6 {
			http.Error(w, "out of order", http.StatusInternalServerError)
			return true
		}
		return false
	}
	front.change.Store(&broken)
	if _, err := copyTo(t, open(t, options), open(t, to)); err == nil {
		t.Fatal("nothing failed")
	}
	if _, err := transfer.Fetch(t.Context(), open(t, to), transfer.Ref{Repository: repository, Tag: tag}); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("half a copy can be used: %v", err)
	}
	front.change.Store(nil)
	done, err := copyTo(t, open(t, options), open(t, to))
	must(t, err)
	v.complete(t, open(t, to))
	if done.SentBytes == 0 || done.SentBytes >= done.Bytes {
		t.Errorf("%d of %d bytes were sent again", done.SentBytes, done.Bytes)
	}
}

func TestMissingContentIsReportedBeforeWriting(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	front := newLiar(t, v.Host)
	options := v.options
	options.Address = front.host
	gone := func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/images/server/manifests/") || strings.Contains(r.URL.Path, "/charts/base/manifests/") {
			http.NotFound(w, r)
			return true
		}
		return false
	}
	front.change.Store(&gone)
	to := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	target := open(t, transfer.Options{Address: to.Host, PlainHTTP: true})
	_, err := copyTo(t, open(t, options), target)
	var missing *transfer.MissingError
	if !errors.As(err, &missing) || len(missing.What) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"image images/server@sha256:", "chart charts/base:1.0.0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %q", err, want)
		}
	}
	if got := writes(to); len(got) > 0 {
		t.Errorf("something was written: %v", got)
	}
	_, err = (&transfer.Copier{From: open(t, options), To: target, Repository: repository, SkipImages: true, SkipCharts: true}).Copy(t.Context(), fetch(t, open(t, options)))
	if err != nil {
		t.Errorf("without images and charts: %v", err)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	to := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	target := open(t, transfer.Options{Address: to.Host, PlainHTTP: true})
	from := open(t, v.options)
	dry, err := (&transfer.Copier{From: from, To: target, Repository: repository, DryRun: true}).Copy(t.Context(), fetch(t, from))
	must(t, err)
	if got := writes(to); len(got) > 0 || !dry.DryRun {
		t.Errorf("something was written: %v", got)
	}
	file := filepath.Join(t.TempDir(), "site.tar")
	w, err := transfer.PlanArchive(file)
	must(t, err)
	planned, err := (&transfer.Copier{From: from, To: w, Repository: repository, DryRun: true}).Copy(t.Context(), fetch(t, from))
	must(t, err)
	must(t, w.Close())
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) > 0 {
		t.Errorf("files were written: %v, %v", entries, err)
	}
	wet, err := copyTo(t, from, target)
	must(t, err)
	if wet.SentBytes != dry.SentBytes || wet.SentBytes != planned.SentBytes {
		t.Errorf("%d bytes were sent, where %d and %d were planned", wet.SentBytes, dry.SentBytes, planned.SentBytes)
	}
}

func TestCopyOmitsTheSourceRegistryIfUnsigned(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		excludes []string
		local    bool
	}{
		"allowed":   {bundle.DefaultExcludes, true},
		"forbidden": {nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, making{registry: "HOST", excludes: tt.excludes})
			to := open(t, newOwn(t))
			_, err := copyTo(t, open(t, v.options), to)
			must(t, err)
			v.complete(t, to)
			if got := fetch(t, to).Spec.Packages[0].Source.Registry; (got == "") != tt.local {
				t.Errorf("the copy names registry %q", got)
			}
		})
	}
}

func TestOlderBundleDoesNotBecomeLatest(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{})
	to := open(t, newOwn(t))
	for _, step := range []struct{ name, latest string }{{"v1-36-9", "v1-36-9"}, {"v1-36-10", "v1-36-10"}, {"v1-36-9", "v1-36-10"}, {"v1-36-2", "v1-36-10"}} {
		v.bundle.Name = step.name
		_, err := transfer.Publish(t.Context(), to, transfer.Publication{Bundle: v.bundle, Charts: v.charts, Repository: repository})
		must(t, err)
		got, err := transfer.Fetch(t.Context(), to, transfer.Ref{Repository: repository, Tag: latest})
		must(t, err)
		if got.Name != step.latest {
			t.Errorf("after %s, the latest is %s, want %s", step.name, got.Name, step.latest)
		}
	}
}

func TestPublishRequiresTheCharts(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{})
	to := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	target := open(t, transfer.Options{Address: to.Host, PlainHTTP: true})
	publish := func(p transfer.Publication) error {
		p.Bundle, p.Repository = v.bundle, repository
		_, err := transfer.Publish(t.Context(), target, p)
		return err
	}
	var missing *transfer.MissingError
	if err := publish(transfer.Publication{Charts: v.charts[:1]}); !errors.As(err, &missing) || len(missing.What) != 1 || len(writes(to)) > 0 {
		t.Errorf("without one of the charts: %v, %v", err, writes(to))
	}
	must(t, publish(transfer.Publication{Charts: v.charts}))
	must(t, publish(transfer.Publication{})) // they are in the registry now
	for i := range v.bundle.Spec.Packages {
		v.bundle.Spec.Packages[i].Source.Registry = "registry.invalid"
	}
	must(t, publish(transfer.Publication{})) // the bundle refers to another registry
	if got := fetch(t, target).Spec.Packages[0].Source.Registry; got != "registry.invalid" {
		t.Errorf("a bundle was changed when it was published: registry %q", got)
	}
}

// largest returns the offset of the largest file of a tar.
func largest(t *testing.T, content []byte) int64 {
	t.Helper()
	reader := bytes.NewReader(content)
	offset, size := int64(0), int64(0)
	for entries := tar.NewReader(reader); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return offset
		}
		must(t, err)
		if entry.Size > size {
			offset, size = reader.Size()-int64(reader.Len()), entry.Size
		}
	}
}

func TestDamagedArchiveIsRejected(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.tar")
	w, err := transfer.CreateArchive(whole)
	must(t, err)
	_, err = copyTo(t, open(t, v.options), w)
	must(t, err)
	must(t, w.Finish())
	content, err := os.ReadFile(whole)
	must(t, err)

	cut := filepath.Join(dir, "cut.tar")
	must(t, os.WriteFile(cut, content[:len(content)/2], 0o600))
	if _, err := transfer.OpenArchive(cut); err == nil {
		t.Error("an archive that was cut off was opened")
	}
	must(t, os.WriteFile(cut, []byte("hello"), 0o600))
	if _, err := transfer.OpenArchive(cut); err == nil {
		t.Error("something else was opened")
	}

	damaged := filepath.Join(dir, "damaged.tar")
	content[largest(t, content)] ^= 1
	must(t, os.WriteFile(damaged, content, 0o600))
	a, err := transfer.OpenArchive(damaged)
	must(t, err)
	defer a.Close()
	to := open(t, newOwn(t))
	if _, err := copyTo(t, a, to); !errors.Is(err, transfer.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if _, err := transfer.Fetch(t.Context(), to, transfer.Ref{Repository: repository, Tag: tag}); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("half a copy can be used: %v", err)
	}
}
