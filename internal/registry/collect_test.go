package registry_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// contents counts pieces of content on disk.
func (w *world) contents() int {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.options.Dir, "docker/registry/v2/blobs/sha256/*/*/data"))
	must(w.t, err)
	return len(files)
}

func (w *world) collect(age time.Duration) registry.Collected {
	w.t.Helper()
	done, err := w.client().Collect(w.t.Context(), age)
	must(w.t, err)
	return done
}

func TestCollectRemovesUnreferencedBlobs(t *testing.T) {
	w := newWorld(t, nil)
	if done := w.collect(0); done.Removed != 0 {
		t.Errorf("an empty registry had %+v", done)
	}
	w.push("kept", "1.0.0")
	gone := w.push("gone", "1.0.0")
	before := w.contents()
	if done := w.collect(0); done.Removed != 0 || w.contents() != before {
		t.Errorf("with everything in use, %+v was removed", done)
	}
	if status := w.ask(http.MethodDelete, "/v2/charts/gone/manifests/"+gone.Digest, "sesame"); status != http.StatusAccepted {
		t.Fatalf("deleting: %d", status)
	}
	if done := w.collect(registry.DefaultAge); done.Removed != 0 || w.contents() != before {
		t.Errorf("%+v was removed though it is new", done)
	}
	done := w.collect(0)
	if done.Removed != 3 || done.Bytes == 0 || w.contents() != before-3 {
		t.Errorf("%+v was removed, want the manifest, the metadata and the chart", done)
	}
	if _, err := w.pull("kept", "1.0.0"); err != nil {
		t.Errorf("what is in use: %v", err)
	}
	if _, err := w.pull("gone", "1.0.0"); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("deleted content: got error %v", err)
	}
	w.push("gone", "1.0.0")
	if _, err := w.pull("gone", "1.0.0"); err != nil {
		t.Errorf("pushed again: %v", err)
	}
}

func TestCollectKeepsBlobsOfDamagedManifests(t *testing.T) {
	w := newWorld(t, nil)
	pushed := w.push("hello", "1.0.0")
	w.damage(pushed.Digest)
	done := w.collect(0)
	if len(done.Damaged) != 1 || done.Damaged[0].Digest != pushed.Digest || done.Removed != 0 {
		t.Errorf("removed %+v, want the damaged manifest only: what it refers to is not known", done)
	}
	w.push("hello", "1.0.0")
	if done := w.collect(0); done.Removed != 0 || len(done.Damaged) != 0 {
		t.Errorf("after the push %+v was removed", done)
	}
	if _, err := w.pull("hello", "1.0.0"); err != nil {
		t.Error(err)
	}
}

func TestCollectRemovesAbandonedUploads(t *testing.T) {
	w := newWorld(t, nil)
	for range 2 {
		if status := w.ask(http.MethodPost, "/v2/charts/hello/blobs/uploads/", "sesame"); status != http.StatusAccepted {
			t.Fatalf("beginning an upload: %d", status)
		}
	}
	begun, err := filepath.Glob(filepath.Join(w.options.Dir, "docker/registry/v2/repositories/charts/hello/_uploads/*/startedat"))
	must(t, err)
	if len(begun) != 2 {
		t.Fatalf("uploads: %v", begun)
	}
	must(t, os.WriteFile(begun[0], []byte(time.Now().Add(-25*time.Hour).UTC().Format(time.RFC3339)), 0o600))
	if done := w.collect(0); done.Uploads != 1 {
		t.Errorf("%d uploads were removed, want the one of yesterday", done.Uploads)
	}
	if _, err := os.Stat(begun[1]); err != nil {
		t.Errorf("the upload under way: %v", err)
	}
}

func TestCollectDuringPush(t *testing.T) {
	w := newWorld(t, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 10 {
			name := "hello-" + string(rune('a'+i))
			if _, err := w.client().Push(t.Context(), "charts", chart(t, name, "1.0.0")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}()
	for {
		w.collect(time.Minute)
		select {
		case <-ended:
			list, err := w.client().List(t.Context())
			must(t, err)
			if len(list) != 10 {
				t.Errorf("%d charts arrived", len(list))
			}
			for _, r := range list {
				if _, err := w.pull(filepath.Base(r.Name), "1.0.0"); err != nil {
					t.Error(err)
				}
			}
			return
		default:
		}
	}
}
