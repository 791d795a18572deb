package artifact

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRegistryDocumentsAreBounded serves a manifest and a list of tags that never end.
func TestRegistryDocumentsAreBounded(t *testing.T) {
	served := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/":
		case strings.HasSuffix(r.URL.Path, "/tags/list"):
			fmt.Fprint(w, `{"tags": ["`)
			served = serve(w)
		default:
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprint(w, `{"a": "`)
			served = serve(w)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	store, err := Open(Options{Dir: t.TempDir(), PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	for _, version := range []string{"1.0.0", ">1"} {
		ref := Ref{URL: "oci://" + strings.TrimPrefix(server.URL, "http://"), Name: "a", Version: version}
		if _, err := store.Resolve(t.Context(), ref); err == nil || served > 16 {
			t.Errorf("version %s: read %d MiB, error %v", version, served, err)
		}
	}
}

// serve writes until nobody reads, but at most 128 MiB.
func serve(w http.ResponseWriter) int {
	block := []byte(strings.Repeat("x", 1<<20))
	for n := range 128 {
		if _, err := w.Write(block); err != nil {
			return n
		}
	}
	return 128
}
