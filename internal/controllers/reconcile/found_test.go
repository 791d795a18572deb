package reconcile

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// sent is a Machine as a reconciler creates it.
const sent = `{"kind":"Machine","metadata":{"name":"m","labels":{"a":"1"},"ownerReferences":[{"kind":"MachineSet","name":"s","uid":"owner"}]}}`

// create sends a Machine from a reconcile of one.
func (w *world) create(t *testing.T, method, path, contentType string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctrl.LoggerInto(t.Context(), w.guard.logger(&one)), method, "https://server"+path, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	resp, err := w.send.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusCreated {
		return "", errors.New(resp.Status)
	}
	return string(body), nil
}

func TestCreationWithoutAnswerReturnsTheObject(t *testing.T) {
	const stored = `{"kind":"Machine","metadata":{"name":"m","uid":"u","resourceVersion":"10","labels":{"a":"1","b":"2"},"ownerReferences":[{"uid":"owner"}]}}`
	w := newWorld(t, func(r *http.Request) (string, error) {
		if r.Method != http.MethodGet {
			return "", errors.New("connection reset")
		}
		if r.URL.Path != machinesPath+"/m" {
			t.Errorf("read %s", r.URL.Path)
		}
		return stored, nil
	})
	for _, tc := range []struct{ name, method, path, contentType string }{
		{"create", http.MethodPost, machinesPath, "application/json"},
		{"apply", http.MethodPatch, machinesPath + "/m", "application/apply-patch+yaml"},
	} {
		got, err := w.create(t, tc.method, tc.path, tc.contentType)
		if err != nil || got != stored {
			t.Errorf("%s: got %q, %v", tc.name, got, err)
		}
	}
	if w.guard.writes.seen(one, w.guard.tracker) {
		t.Error("the write counts as seen, want unseen: the cache lacks it")
	}
	w.informer.knows(t, "m", "10", "u")
	if !w.guard.writes.seen(one, w.guard.tracker) {
		t.Error("the write counts as unseen, want seen: the cache has it")
	}
}

// TestCreationWithoutAnswerIsFoundIfTheCacheIsFaster lets the cache learn of an object before the
// connection of its creation breaks.
func TestCreationWithoutAnswerIsFoundIfTheCacheIsFaster(t *testing.T) {
	const stored = `{"kind":"Machine","metadata":{"name":"m","uid":"u","resourceVersion":"10","labels":{"a":"1"},"ownerReferences":[{"uid":"owner"}]}}`
	var w *world
	w = newWorld(t, func(r *http.Request) (string, error) {
		if r.Method != http.MethodGet {
			w.informer.knows(t, "m", "10", "u")
			return "", errors.New("connection reset")
		}
		return stored, nil
	})
	if got, err := w.create(t, http.MethodPatch, machinesPath+"/m", "application/apply-patch+yaml"); err != nil || got != stored {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCreationWithoutAnswerFailsUnlessItCreatedTheObject(t *testing.T) {
	list := `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"20"},"items":[]}`
	for name, tc := range map[string]struct {
		method, contentType string
		stored              string // "" means that it does not exist
		cached              bool
	}{
		"it does not exist":         {method: http.MethodPost, contentType: "application/json"},
		"it belongs to another":     {method: http.MethodPost, contentType: "application/json", stored: `{"metadata":{"name":"m","labels":{"a":"1"},"ownerReferences":[{"uid":"other"}]}}`},
		"it has other labels":       {method: http.MethodPost, contentType: "application/json", stored: `{"metadata":{"name":"m","ownerReferences":[{"uid":"owner"}]}}`},
		"it is being deleted":       {method: http.MethodPost, contentType: "application/json", stored: strings.Replace(sent, `"name":"m"`, `"name":"m","deletionTimestamp":"2026-01-01T00:00:00Z"`, 1)},
		"it existed before":         {method: http.MethodPatch, contentType: "application/apply-patch+yaml", stored: sent, cached: true},
		"the request was an update": {method: http.MethodPut, contentType: "application/json", stored: sent},
		"the request was a merge":   {method: http.MethodPatch, contentType: "application/merge-patch+json", stored: sent},
		"the answer is garbage":     {method: http.MethodPost, contentType: "application/json", stored: "{"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(r *http.Request) (string, error) {
				switch {
				case r.Method != http.MethodGet:
					return "", errors.New("connection reset")
				case r.URL.Path == machinesPath:
					return list, nil
				case tc.stored == "":
					return `{"kind":"Status","code":404}`, nil
				}
				return tc.stored, nil
			})
			if tc.cached {
				w.informer.knows(t, "m", "5", "u")
			}
			path := machinesPath
			if tc.method != http.MethodPost {
				path += "/m"
			}
			if got, err := w.create(t, tc.method, path, tc.contentType); err == nil {
				t.Errorf("got %q instead of an error", got)
			}
		})
	}
}

func TestServerErrorsCountAsUnseen(t *testing.T) {
	answer := make(chan struct{})
	t.Cleanup(func() { close(answer) })
	w := newWorld(t, nil)
	w.guard.tracker.http = &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		<-answer
		return nil, errors.New("down")
	})}
	w.send = w.guard.tracker.transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{Status: "504 Gateway Timeout", StatusCode: http.StatusGatewayTimeout, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
	}))
	if err := w.write(t, http.MethodPut, machinesPath+"/m"); err != nil {
		t.Fatal(err)
	}
	w.queue.Add(one)
	if w.next(100 * time.Millisecond) {
		t.Error("a write that the API server may have carried out doesn't hold the next reconcile back")
	}
}
