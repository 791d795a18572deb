package artifact_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// every is how long answers are cached in tests.
const every = 10 * time.Minute

// opened is a store with its clock.
type opened struct {
	*artifact.Store

	clock *clocktesting.FakePassiveClock
	dir   string
}

// open opens a store that allows plain HTTP, unless a change disables it.
func open(t *testing.T, change ...func(*artifact.Options)) *opened {
	t.Helper()
	clock := clocktesting.NewFakePassiveClock(time.Now())
	options := artifact.Options{Dir: t.TempDir(), PlainHTTP: true, ResolveEvery: every, Clock: clock}
	for _, c := range change {
		c(&options)
	}
	store, err := artifact.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return &opened{Store: store, clock: clock, dir: options.Dir}
}

func (o *opened) pass(d time.Duration) { o.clock.SetTime(o.clock.Now().Add(d)) }

// get resolves and fetches a package.
func (o *opened) get(t *testing.T, ref artifact.Ref) (artifact.Resolved, []byte) {
	t.Helper()
	resolved := o.resolve(t, ref)
	data, err := o.Fetch(t.Context(), ref, resolved)
	if err != nil {
		t.Fatal(err)
	}
	return resolved, data
}

func (o *opened) resolve(t *testing.T, ref artifact.Ref) artifact.Resolved {
	t.Helper()
	resolved, err := o.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func (o *opened) fails(t *testing.T, ref artifact.Ref, want error) error {
	t.Helper()
	resolved, err := o.Resolve(t.Context(), ref)
	if err == nil {
		_, err = o.Fetch(t.Context(), ref, resolved)
	}
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
	return err
}

func TestRequestsAreNotRepeated(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository.Publish("cni", "1.0.0", chart)
	registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: artifacttest.Chart(t, "cni", "1.0.0", map[string]string{"x": "y"})})
	store := open(t)
	refs := []artifact.Ref{
		{URL: repository.URL, Name: "cni", Version: "1.0.0"},
		{URL: repository.URL, Name: "cni", Version: "^1.0.0"},
		{URL: registry.URL, Name: "cni", Version: "1.0.0"},
		{URL: registry.URL, Name: "cni"},
	}
	for _, ref := range refs {
		store.get(t, ref)
	}
	before := append(repository.Requests(), registry.Requests()...)
	stats := store.Stats()
	for range 3 {
		for _, ref := range refs {
			store.get(t, ref)
		}
		store.pass(every / 4)
	}
	if diff := cmp.Diff(before, append(repository.Requests(), registry.Requests()...)); diff != "" {
		t.Errorf("requests were made:\n%s", diff)
	}
	if got := store.Stats(); got.Downloads != 2 || got.Downloads != stats.Downloads || got.CacheHits != stats.CacheHits+12 {
		t.Errorf("counted %+v", got)
	}
	store.pass(100 * every)
	store.get(t, refs[0])
	store.get(t, refs[2])
	if diff := cmp.Diff(before, append(repository.Requests(), registry.Requests()...)); diff != "" {
		t.Errorf("exact versions were requested again:\n%s", diff)
	}
}

func TestConcurrentCallersShareOneDownload(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	store := open(t)
	repository.Hang()
	var wait sync.WaitGroup
	for i := range 50 {
		ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: []string{"", "1.0.0", "^1"}[i%3]}
		wait.Go(func() {
			resolved, err := store.Resolve(t.Context(), ref)
			if err == nil {
				_, err = store.Fetch(t.Context(), ref, resolved)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for len(repository.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	repository.Resume()
	wait.Wait()
	if indexes, archives := repository.Count("index.yaml"), repository.Count(".tgz"); indexes != 1 || archives != 1 {
		t.Errorf("%d requests for the index and %d for the archive", indexes, archives)
	}
}

func TestCanceledCallerDoesNotCancelOthers(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	repository.Publish("cni", "1.0.0", artifacttest.Chart(t, "cni", "1.0.0", nil))
	store := open(t)
	repository.Hang()
	ref := artifact.Ref{URL: repository.URL, Name: "cni", Version: "1.0.0"}
	impatient, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	go func() { _, err := store.Resolve(impatient, ref); gaveUp <- err }()
	for len(repository.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want %v", err, context.Canceled)
	}
	repository.Resume()
	store.resolve(t, ref)
	if n := repository.Count("index.yaml"); n != 1 {
		t.Errorf("%d requests for the index", n)
	}
}

func TestHangingServerTimesOut(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	store := open(t, func(o *artifact.Options) { o.Timeout = 50 * time.Millisecond })
	repository.Hang()
	store.fails(t, artifact.Ref{URL: repository.URL, Name: "cni"}, context.DeadlineExceeded)
}

func TestInvalidReferences(t *testing.T) {
	store := open(t)
	for name, ref := range map[string]artifact.Ref{
		"no URL":               {URL: "charts", Name: "cni"},
		"a URL that is broken": {URL: "https://me:hidden@[::1", Name: "cni"},
		"another scheme":       {URL: "file:///charts", Name: "cni"},
		"unknown scheme":       {URL: "ftp://me:hidden@example.com/charts", Name: "cni"},
		"no name":              {URL: "https://me:hidden@example.com/charts"},
		"invalid name":         {URL: "oci://example.com/charts", Name: "CNI!"},
		"a CA that is none":    {URL: "https://example.com/charts", Name: "cni", Access: artifact.Access{CA: []byte("hidden")}},
		"a digest over HTTP":   {URL: "https://example.com/charts", Name: "cni", Version: "sha256:00"},
		"invalid digest":       {URL: "oci://example.com/charts", Name: "cni", Version: "sha256:00"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := store.fails(t, ref, artifact.ErrInvalid); strings.Contains(err.Error(), "hidden") {
				t.Errorf("error %q contains credentials", err)
			}
		})
	}
	_, err := store.Fetch(t.Context(), artifact.Ref{URL: "https://example.com", Name: "cni"}, artifact.Resolved{})
	if !errors.Is(err, artifact.ErrInvalid) {
		t.Errorf("fetching an unresolved reference: %v", err)
	}
}

func TestMetrics(t *testing.T) {
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository.Publish("cni", "1.0.0", chart)
	metrics := prometheus.NewRegistry()
	store := open(t, func(o *artifact.Options) { o.Metrics = metrics })
	store.get(t, artifact.Ref{URL: repository.URL, Name: "cni"})
	want := fmt.Sprintf("# HELP drover_artifact_downloaded_bytes_total Size of all packages downloaded.\n"+
		"# TYPE drover_artifact_downloaded_bytes_total counter\ndrover_artifact_downloaded_bytes_total %d\n", len(chart))
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "drover_artifact_downloaded_bytes_total"); err != nil {
		t.Error(err)
	}
}

func TestClosedStoreFails(t *testing.T) {
	store := open(t)
	store.Close()
	store.fails(t, artifact.Ref{URL: "https://example.com/charts", Name: "cni"}, context.Canceled)
}
