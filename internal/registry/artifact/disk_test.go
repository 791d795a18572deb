package artifact_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestStoresShareTheCache(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository.Publish("cni", "1.0.0", chart)
	one := open(t)
	ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.0.0"}
	resolved, _ := one.get(t, ref)
	repository.Fail(http.StatusServiceUnavailable)
	other := open(t, func(o *artifact.Options) { o.Dir = one.dir })
	if data, err := other.Fetch(t.Context(), ref, resolved); err != nil || !bytes.Equal(data, chart) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestDamagedArchiveIsDownloadedAgain(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository.Publish("cni", "1.0.0", chart)
	store := open(t)
	ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.0.0"}
	resolved, _ := store.get(t, ref)
	file := filepath.Join(store.dir, strings.Replace(resolved.Digest, ":", "/", 1))
	if err := os.WriteFile(file, chart[:len(chart)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, data := store.get(t, ref); !bytes.Equal(data, chart) || repository.Count(".tgz") != 2 {
		t.Errorf("%d bytes after %d downloads", len(data), repository.Count(".tgz"))
	}
	if data, err := os.ReadFile(file); err != nil || !bytes.Equal(data, chart) {
		t.Errorf("the file was not replaced: %v", err)
	}
}

// A file in place of the directory simulates a full disk.
func TestFullDiskOnlyDisablesTheCache(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository.Publish("cni", "1.0.0", chart)
	store := open(t)
	files := filepath.Join(store.dir, "sha256")
	if err := errors.Join(os.RemoveAll(files), os.WriteFile(files, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, data := store.get(t, artifact.Ref{URL: repository.URL, Name: "cni"}); !bytes.Equal(data, chart) {
		t.Errorf("got %d bytes", len(data))
	}
	if store.Stats().CacheFailures == 0 {
		t.Error("the failure was not counted")
	}
	if _, err := artifact.Open(artifact.Options{Dir: store.dir}); err == nil {
		t.Error("opening a cache in place of a file succeeded")
	}
}

func TestSameChartAndVersionInTwoRepositories(t *testing.T) {
	store := open(t)
	for _, content := range []string{"one", "other"} {
		repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
		chart := artifacttest.Chart(t, "cni", "1.0.0", map[string]string{"values.yaml": content})
		repository.Publish("cni", "1.0.0", chart)
		if _, data := store.get(t, artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.0.0"}); !bytes.Equal(data, chart) {
			t.Errorf("the chart of the %s repository has other content", content)
		}
	}
}
