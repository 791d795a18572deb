package artifact_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestIndexIsDownloadedOnlyIfItChanged(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	statuses := make(chan int, 10)
	recorded := recordStatuses(t, repository.URL, statuses)
	store := open(t)
	newest := artifact.Ref{URL: recorded + "/charts", Name: "cni"}
	expect := func(version string, status int) {
		t.Helper()
		if got := store.resolve(t, newest); got.Version != version {
			t.Errorf("version %q, want %q", got.Version, version)
		}
		if got := <-statuses; got != status {
			t.Errorf("the server responded %d, want %d", got, status)
		}
	}
	expect("1.0.0", http.StatusOK)
	store.pass(every)
	expect("1.0.0", http.StatusNotModified)
	repository.Publish("cni", "1.1.0", artifacttest.Chart(t, "cni", "1.1.0", nil))
	store.pass(every)
	expect("1.1.0", http.StatusOK)
}

// recordStatuses forwards requests and records the status of responses.
func recordStatuses(t *testing.T, to string, statuses chan<- int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, _ := http.NewRequestWithContext(r.Context(), r.Method, strings.TrimSuffix(to, "/charts")+r.URL.Path, http.NoBody)
		request.Header = r.Header.Clone()
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		statuses <- response.StatusCode
		var body bytes.Buffer
		_, _ = body.ReadFrom(response.Body)
		w.Header().Set("ETag", response.Header.Get("ETag"))
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestNewVersionIsFound(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	store := open(t)
	store.get(t, artifact.Ref{URL: repository.URL, Name: "cni"})
	ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.1.0"}
	store.fails(t, ref, artifact.ErrNotFound)
	store.fails(t, artifact.Ref{URL: repository.URL, Name: "csi"}, artifact.ErrNotFound)
	repository.Publish("cni", "1.1.0", artifacttest.Chart(t, "cni", "1.1.0", nil))
	store.get(t, ref)
}

func TestUnreachableRepository(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	store := open(t)
	newest := artifact.Ref{URL: repository.URL, Name: "cni"}
	want := store.resolve(t, newest)
	repository.Fail(http.StatusServiceUnavailable)
	store.pass(every)
	asked := repository.Count("index.yaml")
	for range 5 {
		if got := store.resolve(t, newest); got != want {
			t.Errorf("resolved to %v, want %v", got, want)
		}
	}
	if n := repository.Count("index.yaml") - asked; n != 1 {
		t.Errorf("%d requests to an unreachable server", n)
	}
	store.pass(5*every - time.Second) // the last moment at which it is used
	store.resolve(t, newest)
	if n := store.Stats().StaleAnswers; n != 2 {
		t.Errorf("%d stale answers", n)
	}
	store.pass(time.Second)
	if _, err := store.Resolve(t.Context(), newest); err == nil {
		t.Error("a stale answer was used too long")
	}
}

func TestErrorResponseReplacesTheAnswer(t *testing.T) {
	for status, want := range map[int]error{http.StatusForbidden: artifact.ErrForbidden, http.StatusNotFound: artifact.ErrNotFound} {
		repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
		repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
		store := open(t)
		newest := artifact.Ref{URL: repository.URL, Name: "cni"}
		store.resolve(t, newest)
		repository.Fail(status)
		store.pass(every)
		if resolved, err := store.Resolve(t.Context(), newest); !errors.Is(err, want) {
			t.Errorf("after %d: %v, %v", status, resolved, err)
		}
	}
}

func TestIndexWithoutDigests(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository.Publish("cni", "1.0.0", chart)
	with := open(t).resolve(t, artifact.Ref{URL: repository.URL, Name: "cni"})
	repository.PublishAs("cni", "1.0.0", "", artifacttest.ArchiveName("cni", "1.0.0"))
	store := open(t)
	for range 3 {
		without, data := store.get(t, artifact.Ref{URL: repository.URL, Name: "cni"})
		if without != with || !bytes.Equal(data, chart) {
			t.Errorf("resolved to %v, want %v", without, with)
		}
		store.pass(every)
	}
	if n := repository.Count(".tgz"); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

func TestArchiveThatDoesNotMatchTheIndex(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	store := open(t)
	ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.0.0"}
	repository.PutFile(artifacttest.ArchiveName("cni", "1.0.0"), []byte("something else"))
	store.fails(t, ref, artifact.ErrInvalid)
	t.Run("is asked about again, because it may have been replaced", func(t *testing.T) {
		replaced := artifacttest.Chart(t, "cni", "1.0.0", map[string]string{"values.yaml": "new: true"})
		repository.Publish("cni", "1.0.0", replaced)
		if _, data := store.get(t, ref); !bytes.Equal(data, replaced) {
			t.Error("the content differs")
		}
	})
	t.Run("or is gone", func(t *testing.T) {
		repository.PublishAs("cni", "2.0.0", strings.Repeat("0", 64), "nowhere.tgz")
		store.fails(t, artifact.Ref{URL: repository.URL, Name: "cni", Version: "2.0.0"}, artifact.ErrNotFound)
	})
}

func TestReplacedVersionIsDetectedWithoutDownload(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.0.0"}
	before := open(t).resolve(t, ref)
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", map[string]string{"values.yaml": "new: true"}))
	if _, err := open(t).Fetch(t.Context(), ref, before); !errors.Is(err, artifact.ErrInvalid) {
		t.Errorf("got error %v, want %v", err, artifact.ErrInvalid)
	}
	if n := repository.Count(".tgz"); n != 0 {
		t.Errorf("%d downloads", n)
	}
}

func TestArchiveAddresses(t *testing.T) {
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		_, _ = w.Write(chart)
	}))
	defer server.Close()
	for _, c := range []struct{ url, address, asks string }{
		{"/charts", "cni.tgz", "/charts/cni.tgz"},
		{"/charts/", "sub/cni.tgz", "/charts/sub/cni.tgz"},
		{"/charts", "../cni.tgz", "/cni.tgz"},
		{"/charts", "/elsewhere/cni.tgz", "/elsewhere/cni.tgz"},
		{"/charts", "cni-1.0.0%2Bbuild.tgz", "/charts/cni-1.0.0%2Bbuild.tgz"},
		{"/charts", "cni.tgz?part=1", "/charts/cni.tgz?part=1"},
		{"/charts?key=1", "cni.tgz", "/charts/cni.tgz?key=1"},
		{"/charts", server.URL + "/absolute/cni.tgz", "/absolute/cni.tgz"},
	} {
		t.Run(c.url+" "+c.address, func(t *testing.T) {
			index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "index.yaml") {
					_, _ = fmt.Fprintf(w, "entries: {cni: [{version: 1.0.0, urls: [%q]}]}", c.address)
					return
				}
				server.Config.Handler.ServeHTTP(w, r)
			}))
			defer index.Close()
			asked = nil
			open(t).get(t, artifact.Ref{URL: index.URL + c.url, Name: "cni"})
			if diff := cmp.Diff([]string{c.asks}, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEndlessResponseIsRejected(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chunk := bytes.Repeat([]byte("#\n"), 1<<19)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	store := open(t, func(o *artifact.Options) { o.Timeout = time.Minute })
	if err := store.fails(t, artifact.Ref{URL: server.URL, Name: "cni"}, artifact.ErrInvalid); !strings.Contains(err.Error(), "larger") {
		t.Errorf("got error %v, want one that contains %q", err, "larger")
	}
}
