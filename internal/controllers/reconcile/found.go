package reconcile

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// findTimeout bounds one attempt to read an object whose creation got no answer.
const findTimeout = 5 * time.Second

// findBackoff is the time between attempts: most connections break for a moment only.
func findBackoff() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Factor: 3, Jitter: 0.2, Steps: 4}
}

// creation returns the metadata of the object that a request is about to create. The cache is asked
// before the request is sent: it may learn of the object before the caller does.
func (t *tracker) creation(r *http.Request, at place) (metav1.ObjectMeta, bool) {
	sent, ok := sentMetadata(r)
	return sent, ok && !t.cached(at, sent.Name)
}

// find returns the object that a request without an answer has created. Upstream takes a lost
// answer for a failure and deletes what it created before: a Machine would stay without its
// infrastructure forever. The caller gets the object as the answer instead.
func (t *tracker) find(r *http.Request, at place, sent metav1.ObjectMeta) ([]byte, bool) {
	address := *r.URL
	address.Path, address.RawPath, address.RawQuery = at.list+"/"+sent.Name, "", ""
	backoff := findBackoff()
	for {
		found, status, err := t.read(r.Context(), address.String())
		if err == nil && status < http.StatusInternalServerError {
			return found, status == http.StatusOK && matches(found, sent)
		}
		if backoff.Steps == 0 {
			return nil, false
		}
		select {
		case <-r.Context().Done():
			return nil, false
		case <-time.After(backoff.Step()):
		}
	}
}

// sentMetadata returns the metadata of the object that a request may create.
func sentMetadata(r *http.Request) (metav1.ObjectMeta, bool) {
	apply := r.Method == http.MethodPatch && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	if !apply && r.Method != http.MethodPost || r.GetBody == nil {
		return metav1.ObjectMeta{}, false
	}
	body, err := r.GetBody()
	if err != nil {
		return metav1.ObjectMeta{}, false
	}
	defer body.Close()
	var sent metav1.PartialObjectMetadata
	if err := json.NewDecoder(body).Decode(&sent); err != nil {
		return metav1.ObjectMeta{}, false
	}
	return sent.ObjectMeta, sent.Name != ""
}

// cached reports whether a cache has the object: then the request doesn't create it.
func (t *tracker) cached(at place, name string) bool {
	for _, informer := range t.of(at.resource) {
		if _, exists, err := informer.GetStore().GetByKey(at.key(name)); err != nil || exists {
			return true
		}
	}
	return false
}

// read reads an object from the API server.
func (t *tracker) read(ctx context.Context, url string) ([]byte, int, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody) //nolint:gosec // the API server of the lost request
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := t.http.Do(r) //nolint:gosec // the API server of the lost request
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxListing))
	return body, resp.StatusCode, err
}

// matches reports whether an object is the one that was sent: it has the same owners, labels and
// annotations, besides what the API server added.
func matches(found []byte, sent metav1.ObjectMeta) bool {
	var o metav1.PartialObjectMetadata
	if json.Unmarshal(found, &o) != nil || o.Name != sent.Name || o.DeletionTimestamp != nil {
		return false
	}
	return contains(o.Labels, sent.Labels) && contains(o.Annotations, sent.Annotations) && owned(o.OwnerReferences, sent.OwnerReferences)
}

// owned reports whether all includes some owners, whatever else is known of them.
func owned(all, some []metav1.OwnerReference) bool {
	return !slices.ContainsFunc(some, func(want metav1.OwnerReference) bool {
		return !slices.ContainsFunc(all, func(is metav1.OwnerReference) bool { return is.UID == want.UID })
	})
}

func contains(all, some map[string]string) bool {
	for key, want := range some {
		if value, ok := all[key]; !ok || value != want {
			return false
		}
	}
	return true
}

// createdAnswer is the answer that got lost.
func createdAnswer(r *http.Request, object []byte) *http.Response {
	return &http.Response{
		Status: "201 Created", StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(object)), ContentLength: int64(len(object)), Request: r,
	}
}
