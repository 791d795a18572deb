package artifacttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"
	"time"
)

// Repository is an HTTP chart repository. Its index has an ETag and is sent only if it has changed.
type Repository struct {
	server

	// URL is the repoURL of a HelmChartProxy.
	URL string

	published sync.Mutex
	entries   map[string][]entry
	files     map[string][]byte
}

// entry is a version in an index.
type entry struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Digest  string   `json:"digest,omitempty"`
	URLs    []string `json:"urls"`
}

// NewRepository starts an empty repository that stops with the test.
func NewRepository(t testing.TB, options ServerOptions) *Repository {
	t.Helper()
	r := &Repository{server: server{options: options}, entries: map[string][]entry{}, files: map[string][]byte{}}
	r.serve(t, http.HandlerFunc(r.handle))
	r.URL = r.scheme() + "://" + r.Host + "/charts"
	return r
}

// Publish adds a version of a chart to the index, and its archive.
func (r *Repository) Publish(name, version string, archive []byte) {
	digest := sha256.Sum256(archive)
	r.PublishAs(name, version, hex.EncodeToString(digest[:]), ArchiveName(name, version))
	r.PutFile(ArchiveName(name, version), archive)
}

// ArchiveName returns the name of a chart's archive.
func ArchiveName(name, version string) string { return path.Base(name) + "-" + version + ".tgz" }

// PublishAs adds a version only to the index, with an arbitrary digest and URL. It replaces an
// existing version.
func (r *Repository) PublishAs(name, version, digest, address string) {
	r.Withdraw(name, version)
	r.published.Lock()
	defer r.published.Unlock()
	r.entries[name] = append(r.entries[name], entry{Name: name, Version: version, Digest: digest, URLs: []string{address}})
}

// PutFile creates a file relative to the repository, such as a provenance file.
func (r *Repository) PutFile(name string, content []byte) {
	r.published.Lock()
	defer r.published.Unlock()
	r.files[name] = content
}

// Withdraw removes a version from the index. The archive stays.
func (r *Repository) Withdraw(name, version string) {
	r.published.Lock()
	defer r.published.Unlock()
	var rest []entry
	for _, e := range r.entries[name] {
		if e.Version != version {
			rest = append(rest, e)
		}
	}
	r.entries[name] = rest
}

func (r *Repository) handle(w http.ResponseWriter, request *http.Request) {
	if !r.authorized(request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	file := strings.TrimPrefix(request.URL.Path, "/charts/")
	r.published.Lock()
	content, found := r.files[file]
	r.published.Unlock()
	switch {
	case file == "index.yaml":
		content = r.index()
		digest := sha256.Sum256(content)
		w.Header().Set("ETag", `"`+hex.EncodeToString(digest[:8])+`"`)
	case !found:
		http.NotFound(w, request)
		return
	}
	http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(content))
}

// index returns the index as JSON, which is valid YAML.
func (r *Repository) index() []byte {
	r.published.Lock()
	defer r.published.Unlock()
	index, err := json.MarshalIndent(map[string]any{"apiVersion": "v1", "entries": r.entries}, "", "  ")
	if err != nil {
		panic(err) // encoding can't fail
	}
	return index
}
