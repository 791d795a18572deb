package source_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

const (
	repository = "charts/bundles"
	latest     = "v1-36-latest"
	// rawLayer is the layer type of tools that push files.
	rawLayer types.MediaType = "application/vnd.oci.image.layer.v1.tar"
)

// text returns a published bundle.
func text(name string) []byte {
	return fmt.Appendf(nil, `apiVersion: packages.eks.amazonaws.com/v1alpha1
kind: PackageBundle
metadata: {name: %s, namespace: eksa-packages}
spec:
  packages:
  - name: hello
    source:
      repository: hello
      versions: [{name: 1.0.0, digest: "sha256:%064d"}]
`, name, 1)
}

func publish(t *testing.T, r *artifacttest.Registry, tag string, content []byte) {
	t.Helper()
	r.Push(t, artifacttest.Package{Name: "bundles", Version: tag, Archive: content, MediaType: rawLayer})
}

func newBundles(t *testing.T, o source.Options) *source.Bundles {
	t.Helper()
	b, err := source.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// plain is a registry without TLS, with one bundle, and the request for it.
func plain(t *testing.T) (*artifacttest.Registry, source.Wanted) {
	t.Helper()
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	publish(t, r, latest, text("v1-36-1"))
	return r, source.Wanted{Registry: r.Host, Repository: repository, Tag: latest}
}

func manifests(r *artifacttest.Registry, method string) int {
	count := 0
	for _, request := range r.Requests() {
		if strings.HasPrefix(request, method+" ") && strings.Contains(request, "/manifests/") {
			count++
		}
	}
	return count
}

func TestConcurrentRequestsShareOneFetch(t *testing.T) {
	r, w := plain(t)
	b := newBundles(t, source.Options{PlainHTTP: true})
	w.MaxAge = time.Hour
	heads, gets := manifests(r, http.MethodHead), manifests(r, http.MethodGet)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			found, err := b.Get(t.Context(), w)
			if err != nil || found.Bundle.Name != "v1-36-1" {
				t.Errorf("Get() = %v, %v", found, err)
			}
		})
	}
	all.Wait()
	if got := manifests(r, http.MethodHead) - heads; got != 1 {
		t.Errorf("%d questions for the digest, want 1", got)
	}
	if got := manifests(r, http.MethodGet) - gets; got != 1 {
		t.Errorf("%d manifests came, want 1", got)
	}
}

func TestContentIsFetchedOnlyForNewDigests(t *testing.T) {
	r, w := plain(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	b := newBundles(t, source.Options{PlainHTTP: true, Clock: now})
	w.MaxAge = time.Hour
	get := func() *source.Found {
		t.Helper()
		found, err := b.Get(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := get()
	now.SetTime(now.Now().Add(59 * time.Minute))
	get()
	if got := b.Stats(); got.Looks != 1 || got.Downloads != 1 {
		t.Errorf("within the interval: %+v", got)
	}
	now.SetTime(now.Now().Add(2 * time.Minute))
	if again := get(); again.Bundle != first.Bundle || !again.At.After(first.At) {
		t.Errorf("found %+v after %+v", again, first)
	}
	if got := b.Stats(); got.Looks != 2 || got.Downloads != 1 {
		t.Errorf("after the interval: %+v", got)
	}
	publish(t, r, latest, text("v1-36-2"))
	now.SetTime(now.Now().Add(time.Hour))
	if got := get().Bundle.Name; got != "v1-36-2" {
		t.Errorf("found %q after another was published", got)
	}
	if got := b.Stats(); got.Looks != 3 || got.Downloads != 2 {
		t.Errorf("after a new one: %+v", got)
	}
}

func TestContentOfTwoTagsIsFetchedOnce(t *testing.T) {
	r, w := plain(t)
	publish(t, r, "v1-36-1", text("v1-36-1"))
	b := newBundles(t, source.Options{PlainHTTP: true})
	named := w
	named.Tag = "v1-36-1"
	var all sync.WaitGroup
	for _, w := range []source.Wanted{w, named, w, named} {
		all.Go(func() {
			found, err := b.Get(t.Context(), w)
			if err != nil || found.Bundle.Name != "v1-36-1" || !strings.HasSuffix(found.From, ":"+w.Tag) {
				t.Errorf("Get(%q) = %+v, %v", w.Tag, found, err)
			}
		})
	}
	all.Wait()
	if got := r.Count("GET /v2/" + repository + "/blobs/"); got != 1 || b.Stats().Downloads != 1 {
		t.Errorf("it came %d times, and %d are counted, want 1", got, b.Stats().Downloads)
	}
	named.Access = map[string]artifact.Access{r.Host: {Username: "somebody", Password: "else"}}
	if _, err := b.Get(t.Context(), named); err != nil || b.Stats().Downloads != 2 {
		t.Errorf("other credentials: got error %v, stats %+v", err, b.Stats())
	}
}

func TestBothLayoutsAreRead(t *testing.T) {
	for name, layer := range map[string]types.MediaType{
		"a file that is called a tar": rawLayer,
		"an artifact of YAML":         "application/vnd.cncf.packages.bundle.v1+yaml",
		"of no known type":            "application/octet-stream",
	} {
		t.Run(name, func(t *testing.T) {
			r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
			r.Push(t, artifacttest.Package{Name: "bundles", Version: latest, Archive: text("v1-36-1"), MediaType: layer})
			b := newBundles(t, source.Options{PlainHTTP: true, Default: r.Host + "/charts"})
			found, err := b.Get(t.Context(), source.Wanted{Repository: "bundles", Tag: latest})
			if err != nil || found.Bundle.Spec.Packages[0].Name != "hello" || found.From != r.Host+"/charts/bundles:"+latest {
				t.Errorf("Get() = %+v, %v", found, err)
			}
		})
	}
}

func TestInvalidBundlesAreRejected(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"empty":           {"", "package bundle artifact is empty"},
		"not YAML":        {"{", "unmarshalling package bundle: "},
		"something else":  {"kind: ConfigMap\nmetadata: {name: x}\n", `unmarshalling package bundle: got kind "ConfigMap"`},
		"without a name":  {"apiVersion: packages.eks.amazonaws.com/v1alpha1\nkind: PackageBundle\n", "unmarshalling package bundle: no name"},
		"larger than any": {"# " + strings.Repeat("x", 5<<20), "fetch blob: "},
	} {
		t.Run(name, func(t *testing.T) {
			r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
			publish(t, r, latest, []byte(test.content))
			b := newBundles(t, source.Options{PlainHTTP: true})
			_, err := b.Get(t.Context(), source.Wanted{Registry: r.Host, Repository: repository, Tag: latest})
			if err == nil || !strings.HasPrefix(err.Error(), "pulling package bundle: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Get() = %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestMissingContentIsReported(t *testing.T) {
	r, w := plain(t)
	b := newBundles(t, source.Options{PlainHTTP: true})
	w.Tag = "v1-99-latest"
	if _, err := b.Get(t.Context(), w); !errors.Is(err, artifact.ErrNotFound) || !strings.Contains(err.Error(), "fetch manifest: ") {
		t.Errorf("Get() = %v", err)
	}
	w.Tag = "not a tag"
	if _, err := b.Get(t.Context(), w); !errors.Is(err, artifact.ErrInvalid) {
		t.Errorf("Get() = %v", err)
	}
	if _, err := b.Get(t.Context(), source.Wanted{Repository: repository, Tag: latest}); err == nil || !strings.HasPrefix(err.Error(), "repository source: ") {
		t.Errorf("Get() without a registry = %v", err)
	}
	if r.Count("not") != 0 {
		t.Error("got a request for an invalid tag, want none")
	}
}

func TestCanceledRequestDoesNotCancelOthers(t *testing.T) {
	r, w := plain(t)
	b := newBundles(t, source.Options{PlainHTTP: true})
	r.Hang()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Get(ctx, w); !errors.Is(err, context.Canceled) {
		t.Fatalf("Get() = %v", err)
	}
	r.Resume()
	if found, err := b.Get(t.Context(), w); err != nil || found.Bundle.Name != "v1-36-1" {
		t.Errorf("Get() = %v, %v", found, err)
	}
}
