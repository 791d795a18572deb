package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// maxApply bounds an applied object, as a real API server does.
const maxApply = 3 << 20

// apply implements server-side apply with the operations of the backend: it creates the object or
// merges the applied fields into it. It does not track field ownership, so fields that are no
// longer applied stay.
func (c *clusters) apply(w http.ResponseWriter, r *http.Request) {
	object, err := readObject(r)
	if err != nil {
		writeStatus(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	wanted := object.GetResourceVersion()
	object.SetResourceVersion("")
	live := newRecording()
	c.api.ServeHTTP(live, request(r, http.MethodGet, r.URL.Path, nil))
	switch {
	case live.code == http.StatusNotFound:
		c.create(w, r, object)
	case live.code != http.StatusOK:
		replay(w, live)
	case wanted != "" && wanted != versionOf(live.body.Bytes()):
		writeStatus(w, http.StatusConflict, metav1.StatusReasonConflict)
	default:
		merge := request(r, http.MethodPatch, r.URL.Path, object)
		merge.Header.Set("Content-Type", string(types.MergePatchType))
		c.api.ServeHTTP(w, merge)
	}
}

// create creates an object. If it exists by now, the result is a conflict, as in server-side apply.
func (c *clusters) create(w http.ResponseWriter, r *http.Request, object *unstructured.Unstructured) {
	made := newRecording()
	c.api.ServeHTTP(made, request(r, http.MethodPost, path.Dir(r.URL.Path), object))
	if made.code == http.StatusConflict {
		writeStatus(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	replay(w, made)
}

func readObject(r *http.Request) (*unstructured.Unstructured, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxApply))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := safeyaml.Unmarshal(body, &object.Object); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	if object.GetName() == "" {
		object.SetName(path.Base(r.URL.Path))
	}
	return object, nil
}

// request returns another request to the same cluster, without parameters.
func request(r *http.Request, method, at string, object *unstructured.Unstructured) *http.Request {
	out := r.Clone(r.Context())
	out.Method, out.Body, out.ContentLength = method, http.NoBody, 0
	out.URL.Path, out.URL.RawQuery = at, ""
	out.Header.Set("Content-Type", "application/json")
	if object != nil {
		data, _ := json.Marshal(object.Object) // decoded from YAML
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	}
	return out
}

func versionOf(object []byte) string {
	var o metav1.PartialObjectMetadata
	_ = json.Unmarshal(object, &o) // no version if invalid
	return o.ResourceVersion
}

// recording buffers a response so that it can be inspected first.
type recording struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func newRecording() *recording { return &recording{header: http.Header{}, code: http.StatusOK} }

func (r *recording) Header() http.Header { return r.header }

func (r *recording) WriteHeader(code int) { r.code = code }

func (r *recording) Write(p []byte) (int, error) { return r.body.Write(p) }

func replay(w http.ResponseWriter, r *recording) {
	for key, values := range r.header {
		w.Header()[key] = values
	}
	w.WriteHeader(r.code)
	_, _ = w.Write(r.body.Bytes())
}
