package source_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// faultyProxy is a proxy before a registry that modifies responses.
type faultyProxy struct {
	host   string
	change atomic.Pointer[func(*http.Response) error]
}

func newLiar(t *testing.T, behind string) *faultyProxy {
	t.Helper()
	l := &faultyProxy{}
	front := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind})
	front.ErrorLog = log.New(io.Discard, "", 0)
	front.ModifyResponse = func(r *http.Response) error {
		if change := l.change.Load(); change != nil { //nolint:bodyclose // the client handles it
			return (*change)(r)
		}
		return nil
	}
	web := httptest.NewUnstartedServer(front)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	t.Cleanup(web.Close)
	l.host = web.Listener.Addr().String()
	return l
}

// modifyResponses sets the modification of responses to GET requests whose path contains part.
func (l *faultyProxy) modifyResponses(part string, change func(*http.Response, []byte) []byte) {
	f := func(r *http.Response) error {
		if r.Request.Method != http.MethodGet || !strings.Contains(r.Request.URL.Path, part) {
			return nil
		}
		was, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		is := change(r, was)
		r.Body = io.NopCloser(bytes.NewReader(is))
		return nil
	}
	l.change.Store(&f)
}

func TestWrongDigestIsDetectedAndRecovers(t *testing.T) {
	sized := func(r *http.Response, is []byte) []byte {
		r.ContentLength = int64(len(is))
		r.Header.Set("Content-Length", strconv.Itoa(len(is)))
		return is
	}
	for name, test := range map[string]struct {
		part   string
		change func(*http.Response, []byte) []byte
		want   string
	}{
		"another manifest": {"/manifests/sha256:", func(r *http.Response, was []byte) []byte {
			return sized(r, bytes.Replace(was, []byte("schemaVersion"), []byte("schemaversion"), 1))
		}, "fetch manifest: "},
		"another bundle": {"/blobs/", func(r *http.Response, was []byte) []byte {
			return sized(r, bytes.Replace(was, []byte("hello"), []byte("jello"), 1))
		}, "fetch blob: "},
		"half a bundle":                {"/blobs/", func(_ *http.Response, was []byte) []byte { return was[:len(was)/2] }, "fetch blob: "},
		"half a bundle, and says so":   {"/blobs/", func(r *http.Response, was []byte) []byte { return sized(r, was[:len(was)/2]) }, "fetch blob: "},
		"half a manifest":              {"/manifests/sha256:", func(_ *http.Response, was []byte) []byte { return was[:len(was)/2] }, "fetch manifest: "},
		"a bundle that never ends":     {"/blobs/", func(r *http.Response, was []byte) []byte { return sized(r, append(was, make([]byte, 8<<20)...)) }, "fetch blob: "},
		"a page instead of a manifest": {"/manifests/sha256:", func(r *http.Response, _ []byte) []byte { return sized(r, []byte("<html>")) }, "fetch manifest: "},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := plain(t)
			front := newLiar(t, r.Host)
			front.modifyResponses(test.part, test.change)
			now := clocktesting.NewFakePassiveClock(time.Now())
			b := newBundles(t, source.Options{PlainHTTP: true, Clock: now, Timeout: 10 * time.Second})
			w.Registry = front.host
			_, err := b.Get(t.Context(), w)
			if err == nil || !strings.Contains(err.Error(), "pulling package bundle: "+test.want) {
				t.Fatalf("Get() = %v, want %q", err, test.want)
			}
			front.change.Store(nil)
			now.SetTime(now.Now().Add(time.Minute))
			if found, err := b.Get(t.Context(), w); err != nil || found.Bundle.Name != "v1-36-1" {
				t.Errorf("once it is honest: %v, %v", found, err)
			}
		})
	}
}

func TestUnavailableRegistryIsQueriedOnce(t *testing.T) {
	for name, breaks := range map[string]func(*artifacttest.Registry){
		"is down":      func(r *artifacttest.Registry) { r.Fail(http.StatusServiceUnavailable) },
		"says nothing": func(r *artifacttest.Registry) { r.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			r, w := plain(t)
			now := clocktesting.NewFakePassiveClock(time.Now())
			b := newBundles(t, source.Options{PlainHTTP: true, Clock: now, Timeout: time.Second})
			w.MaxAge = time.Minute
			if _, err := b.Get(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			now.SetTime(now.Now().Add(time.Hour))
			breaks(r)
			for range 20 {
				if _, err := b.Get(t.Context(), w); err == nil || !strings.Contains(err.Error(), "fetch manifest: ") {
					t.Fatalf("Get() = %v", err)
				}
			}
			if got := b.Stats(); got.Looks != 2 || got.Failures != 1 {
				t.Errorf("20 callers: got %+v, want one more request", got)
			}
			r.Resume()
			now.SetTime(now.Now().Add(time.Minute))
			if _, err := b.Get(t.Context(), w); err != nil {
				t.Errorf("once it is back: %v", err)
			}
			if got := b.Stats().Downloads; got != 1 {
				t.Errorf("%d downloads of what did not change, want 1", got)
			}
		})
	}
}
