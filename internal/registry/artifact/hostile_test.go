package artifact

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/drover-dev/drover/internal/base/bounded"
)

// TestRegistryDocumentsAreBounded serves a manifest and a list of tags that never end.
func TestRegistryDocumentsAreBounded(t *testing.T) {
	for _, version := range []string{"1.0.0", ">1"} {
		var served atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/v2/":
				return
			case strings.HasSuffix(r.URL.Path, "/tags/list"):
				fmt.Fprint(w, `{"tags": ["`)
			default:
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				fmt.Fprint(w, `{"a": "`)
			}
			served.Add(serve(w))
		}))
		store, err := Open(Options{Dir: t.TempDir(), PlainHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		_, err = store.Resolve(t.Context(), Ref{URL: "oci://" + strings.TrimPrefix(server.URL, "http://"), Name: "a", Version: version})
		server.CloseClientConnections()
		server.Close() // waits until all that was served is counted
		if read := served.Load(); err == nil || read == 0 || read > 64 {
			t.Errorf("version %s: got error %v after %d MiB, want an error after at most 64 MiB", version, err, read)
		}
	}
}

// TestSmallDocumentsTakeLittleMemory serves an index of empty descriptors and a list of empty tags.
func TestSmallDocumentsTakeLittleMemory(t *testing.T) {
	many := strings.Repeat(`{},`, 1<<20) + `{}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/":
		case strings.HasSuffix(r.URL.Path, "/tags/list"):
			fmt.Fprintf(w, `{"tags": [%s]}`, many)
		default:
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprintf(w, `{"layers": [%s]}`, many)
		}
	}))
	t.Cleanup(server.Close)
	store, err := Open(Options{Dir: t.TempDir(), PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	for _, version := range []string{"1.0.0", ">1"} {
		ref := Ref{URL: "oci://" + strings.TrimPrefix(server.URL, "http://"), Name: "a", Version: version}
		var large *bounded.TooLargeError
		if _, err := store.Resolve(t.Context(), ref); !errors.As(err, &large) || !large.Decoded {
			t.Errorf("version %s: error %v", version, err)
		}
	}
}

// TestManifestsAreNotAsLargeAsBlobs redirects a manifest to a URL that looks like that of a blob.
func TestManifestsAreNotAsLargeAsBlobs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/":
		case strings.Contains(r.URL.Path, "/blobs/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprintf(w, `{"a": %q}`, strings.Repeat("x", 2*bounded.MaxDocument))
		default:
			http.Redirect(w, r, "/v2/a/blobs/sha256:"+strings.Repeat("0", 64), http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	store, err := Open(Options{Dir: t.TempDir(), PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	var large *bounded.TooLargeError
	ref := Ref{URL: "oci://" + strings.TrimPrefix(server.URL, "http://"), Name: "a", Version: "1.0.0"}
	if _, err := store.Resolve(t.Context(), ref); !errors.As(err, &large) {
		t.Errorf("got error %v, want a %T", err, large)
	}
}

// serve writes until nobody reads, but at most 128 MiB.
func serve(w http.ResponseWriter) int64 {
	block := []byte(strings.Repeat("x", 1<<20))
	for n := range int64(128) {
		if _, err := w.Write(block); err != nil {
			return n
		}
	}
	return 128
}
