package artifacttest

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of package content.
const (
	HelmChart      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	HelmConfig     = "application/vnd.cncf.helm.config.v1+json"
	HelmProvenance = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	FluxContent    = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// token is the token that the registry issues for credentials.
const token = "a-token-of-the-registry"

// Registry is an OCI registry.
type Registry struct {
	server

	// URL is the repoURL of a HelmChartProxy.
	URL string

	transport http.RoundTripper
}

// RegistryOptions configure a registry.
type RegistryOptions struct {
	ServerOptions

	// Tokens makes the registry accept only tokens, which it issues for credentials.
	Tokens bool
}

// Package is a package to push.
type Package struct {
	Name, Version string
	Archive       []byte
	// MediaType is the media type of the archive; it defaults to HelmChart.
	MediaType types.MediaType
	// Provenance is an optional provenance file.
	Provenance []byte
}

// NewRegistry starts an empty registry that stops with the test.
func NewRegistry(t testing.TB, options RegistryOptions) *Registry {
	t.Helper()
	r := &Registry{server: server{options: options.ServerOptions}}
	content := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	handler := http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.URL.Path == "/token":
			r.giveToken(w, request)
		case options.Tokens && request.Header.Get("Authorization") != "Bearer "+token:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=%q", r.scheme()+"://"+r.Host+"/token", r.Host))
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case !options.Tokens && !r.authorized(request):
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			content.ServeHTTP(w, request)
		}
	})
	r.serve(t, handler)
	r.URL = "oci://" + r.Host + "/charts"
	r.transport = trusting(t, r.CA)
	return r
}

func (r *Registry) giveToken(w http.ResponseWriter, request *http.Request) {
	if !r.authorized(request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	fmt.Fprintf(w, `{"token":%q}`, token)
}

// Push publishes a package and returns the digest of its manifest.
func (r *Registry) Push(t testing.TB, p Package) string {
	t.Helper()
	layers := []v1.Layer{static.NewLayer(p.Archive, p.mediaType())}
	if p.Provenance != nil {
		layers = append(layers, static.NewLayer(p.Provenance, HelmProvenance))
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), HelmConfig), layers...)
	must(t, err)
	must(t, remote.Write(r.Tag(t, p.Name, p.Version), image, r.client(t)...))
	digest, err := image.Digest()
	must(t, err)
	return digest.String()
}

func (p Package) mediaType() types.MediaType {
	if p.MediaType == "" {
		return HelmChart
	}
	return p.MediaType
}

// Tag returns the reference of a version of a package.
func (r *Registry) Tag(t testing.TB, packageName, version string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(path.Join(r.Host, "charts", packageName) + ":" + strings.ReplaceAll(version, "+", "_"))
	must(t, err)
	return tag
}

func (r *Registry) client(t testing.TB) []remote.Option {
	return []remote.Option{
		remote.WithContext(t.Context()), remote.WithTransport(r.transport),
		remote.WithAuth(&authn.Basic{Username: r.options.Username, Password: r.options.Password}),
	}
}
