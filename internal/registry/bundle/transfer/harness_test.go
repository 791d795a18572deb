package transfer_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

const (
	repository = "bundles"
	tag        = "v1-36-1"
	latest     = "v1-36-latest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newOwn starts a Drover registry that stops with the test.
func newOwn(t *testing.T) transfer.Options {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	authority, err := pki.NewAuthority("test", time.Now(), time.Hour)
	must(t, err)
	cert, key, err := authority.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "registry"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	must(t, err)
	for name, content := range map[string][]byte{"crt": cert, "key": key, "password": []byte("sesame\n")} {
		must(t, os.WriteFile(file(name), content, 0o600))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	server, err := registry.Open(ctx, registry.Options{
		Dir: file("registry"), CertFile: file("crt"), KeyFile: file("key"), PasswordFile: file("password"), Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return transfer.Options{Address: listener.Addr().String(), CA: authority.PEM(), Username: registry.User, Password: "sesame"}
}

func open(t testing.TB, o transfer.Options) *transfer.Registry {
	t.Helper()
	r, err := transfer.Open(o)
	must(t, err)
	return r
}

// vendor is a registry with a signed bundle of two charts, an image and a multi-platform image.
type vendor struct {
	*artifacttest.Registry

	options transfer.Options
	bundle  *packagesv1.PackageBundle
	keys    bundle.Keys
	charts  []*registry.Chart
}

// options configure a vendor's bundle.
type making struct {
	registry string
	excludes []string
}

func newVendor(t *testing.T, m making) *vendor {
	t.Helper()
	v := &vendor{Registry: artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})}
	v.options = transfer.Options{Address: v.Host, PlainHTTP: true}
	v.bundle = &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Name: tag}}
	if m.excludes != nil {
		v.bundle.Annotations = map[string]string{packagesv1.ExcludesAnnotation: bundle.EncodeExcludes(m.excludes)}
	}
	images := v.pushImages(t)
	for i, name := range []string{"hello", "base"} {
		chart, err := registry.ReadChart(artifacttest.Chart(t, name, "1.0.0", map[string]string{"values.yaml": "a: " + name}))
		must(t, err)
		v.charts = append(v.charts, chart)
		digest, err := transfer.NewMemory().AddChart(chart)
		must(t, err)
		v.bundle.Spec.Packages = append(v.bundle.Spec.Packages, packagesv1.BundlePackage{Name: name, Source: packagesv1.BundlePackageSource{
			Repository: "charts/" + name, Versions: []packagesv1.SourceVersion{{Name: "1.0.0", Digest: digest, Images: images[i : i+1]}},
		}})
	}
	v.sign(t)
	_, err := transfer.Publish(t.Context(), open(t, v.options), transfer.Publication{Bundle: v.bundle, Charts: v.charts, Repository: repository})
	must(t, err)
	if m.registry != "" { // a published bundle may name any registry
		for i := range v.bundle.Spec.Packages {
			v.bundle.Spec.Packages[i].Source.Registry = strings.ReplaceAll(m.registry, "HOST", v.Host)
		}
		v.sign(t)
		_, err := transfer.Publish(t.Context(), open(t, v.options), transfer.Publication{Bundle: v.bundle, Repository: repository})
		must(t, err)
	}
	return v
}

func (v *vendor) sign(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	v.keys, err = bundle.ParseKeys(map[string][]byte{"vendor": []byte(base64.StdEncoding.EncodeToString(der))})
	must(t, err)
	must(t, bundle.Sign(v.bundle, key))
}

// pushImages pushes one image for one platform, and one for two.
func (v *vendor) pushImages(t *testing.T) []packagesv1.VersionImages {
	t.Helper()
	place := func(repository string) name.Repository {
		r, err := name.NewRepository(v.Host+"/"+repository, name.Insecure)
		must(t, err)
		return r
	}
	image, err := random.Image(5000, 3)
	must(t, err)
	digest, err := image.Digest()
	must(t, err)
	must(t, remote.Write(place("images/server").Digest(digest.String()), image))
	index, err := random.Index(4000, 2, 2)
	must(t, err)
	many, err := index.Digest()
	must(t, err)
	must(t, remote.WriteIndex(place("images/many").Digest(many.String()), index))
	return []packagesv1.VersionImages{
		{Repository: "images/server", Digest: digest.String()}, {Repository: "images/many", Digest: many.String()},
	}
}

// fetch reads the bundle from a source.
func fetch(t testing.TB, from transfer.Source) *transfer.Fetched {
	t.Helper()
	found, err := transfer.Fetch(t.Context(), from, transfer.Ref{Repository: repository, Tag: tag})
	must(t, err)
	return found
}

// complete checks that a target has all content of the bundle, undamaged.
func (v *vendor) complete(t *testing.T, in transfer.Source) {
	t.Helper()
	found := fetch(t, in)
	if err := bundle.Verify(found.PackageBundle, v.keys); err != nil {
		t.Errorf("the bundle in %s: %v", in, err)
	}
	for _, p := range v.bundle.Spec.Packages {
		version := p.Source.Versions[0]
		v.same(t, in, transfer.Ref{Repository: p.Source.Repository, Digest: version.Digest})
		v.same(t, in, transfer.Ref{Repository: version.Images[0].Repository, Digest: version.Images[0].Digest})
	}
}

// same reads everything below a manifest, independently of the copier.
func (v *vendor) same(t *testing.T, in transfer.Source, ref transfer.Ref) {
	t.Helper()
	memory := &everything{Source: in}
	must(t, memory.walk(t.Context(), ref))
	if memory.blobs == 0 {
		t.Errorf("%s in %s has no content", ref, in)
	}
}

// writes returns the requests of a registry that change something.
func writes(r *artifacttest.Registry) []string {
	return slices.DeleteFunc(r.Requests(), func(request string) bool {
		return strings.HasPrefix(request, "GET ") || strings.HasPrefix(request, "HEAD ")
	})
}

// faultyProxy is a proxy before a registry that modifies responses.
type faultyProxy struct {
	host   string
	change atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

func newLiar(t *testing.T, behind string) *faultyProxy {
	t.Helper()
	l := &faultyProxy{}
	front := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind})
	front.ErrorLog = log.New(io.Discard, "", 0)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change := l.change.Load(); change != nil && (*change)(w, r) {
			return
		}
		front.ServeHTTP(w, r)
	}))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	t.Cleanup(web.Close)
	l.host = web.Listener.Addr().String()
	return l
}

// modifyResponses responds to GET requests for a path itself, given the real response.
func (l *faultyProxy) modifyResponses(behind, part string, answer func(w http.ResponseWriter, r *http.Request, honest []byte, header http.Header)) {
	f := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, part) {
			return false
		}
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+behind+r.URL.Path, http.NoBody)
		if err != nil {
			return false
		}
		request.Header = r.Header.Clone()
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		honest, err := io.ReadAll(response.Body)
		if err != nil {
			return false
		}
		answer(w, r, honest, response.Header)
		return true
	}
	l.change.Store(&f)
}
