package transfer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// Other clients expect this layout: they read the first layer, whatever its name.
func TestPublishedBundleLayout(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{})
	found := fetch(t, open(t, v.options))
	m, err := open(t, v.options).Manifest(t.Context(), found.Ref)
	must(t, err)
	text, err := bundle.Format(v.bundle)
	must(t, err)
	var got map[string]any
	must(t, json.Unmarshal(m.Content, &got))
	layer := got["layers"].([]any)[0].(map[string]any)
	digest := layer["digest"]
	delete(layer, "digest")
	want := map[string]any{
		"schemaVersion": 2.0, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{
			"mediaType": "application/vnd.unknown.config.v1+json", "size": 2.0,
			"digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
		},
		"layers": []any{map[string]any{
			"mediaType": "application/vnd.oci.image.layer.v1.tar", "size": float64(len(text)),
			"annotations": map[string]any{"org.opencontainers.image.title": "bundle.yaml"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	response, err := http.Get("http://" + v.Host + "/v2/" + repository + "/blobs/" + digest.(string))
	must(t, err)
	defer response.Body.Close()
	var raw bytes.Buffer
	_, err = raw.ReadFrom(response.Body)
	must(t, err)
	if diff := cmp.Diff(string(text), raw.String()); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func TestForeignBundlesAreRead(t *testing.T) {
	t.Parallel()
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	text := []byte("apiVersion: packages.eks.amazonaws.com/v1alpha1\nkind: PackageBundle\nmetadata: {name: v1-36-1}\nspec: {packages: []}\n")
	readme := static.NewLayer([]byte("hello"), "text/markdown")
	push := func(tag string, layers ...types.MediaType) {
		image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
		for _, mediaType := range layers {
			layer := static.NewLayer(text, mediaType)
			if mediaType == "text/markdown" {
				layer = readme
			}
			var err error
			image, err = mutate.AppendLayers(image, layer)
			must(t, err)
		}
		place, err := name.NewTag(r.Host+"/"+repository+":"+tag, name.Insecure)
		must(t, err)
		must(t, remote.Write(place, image))
	}
	push("tar", types.OCIUncompressedLayer)
	push("yaml", "application/yaml")
	push("second", "text/markdown", "application/vnd.example.bundle.v1+yaml")
	push("none")
	push("other", "text/markdown")
	index, err := name.NewTag(r.Host+"/"+repository+":index", name.Insecure)
	must(t, err)
	must(t, remote.WriteIndex(index, empty.Index))
	tests := map[string]string{
		"tar": "", "yaml": "", "second": "", "none": "missing layer", "other": "unmarshalling package bundle: ", "index": "missing layer", "nowhere": "not found",
	}
	from := open(t, transfer.Options{Address: r.Host, PlainHTTP: true})
	for tag, want := range tests {
		found, err := transfer.Fetch(t.Context(), from, transfer.Ref{Repository: repository, Tag: tag})
		switch {
		case want == "" && (err != nil || found.Name != "v1-36-1"):
			t.Errorf("%s: %v", tag, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want one with %q", tag, err, want)
		}
	}
}

func TestFaultySourceRegistryIsDetected(t *testing.T) {
	t.Parallel()
	send := func(w http.ResponseWriter, header http.Header, content []byte) {
		w.Header().Set("Content-Type", header.Get("Content-Type"))
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content)
	}
	other := func(w http.ResponseWriter, _ *http.Request, honest []byte, header http.Header) {
		changed := bytes.Clone(honest)
		changed[len(changed)-1] ^= 1
		send(w, header, changed)
	}
	half := func(w http.ResponseWriter, _ *http.Request, honest []byte, header http.Header) {
		send(w, header, honest[:len(honest)/2])
	}
	breakOff := func(w http.ResponseWriter, _ *http.Request, honest []byte, _ http.Header) {
		w.Header().Set("Content-Length", strconv.Itoa(len(honest)))
		_, _ = w.Write(honest[:len(honest)/2])
		panic(http.ErrAbortHandler)
	}
	more := func(w http.ResponseWriter, _ *http.Request, honest []byte, header http.Header) {
		send(w, header, append(bytes.Clone(honest), make([]byte, 1<<20)...))
	}
	stall := func(w http.ResponseWriter, r *http.Request, honest []byte, _ http.Header) {
		w.Header().Set("Content-Length", strconv.Itoa(len(honest)))
		_, _ = w.Write(honest[:len(honest)/2])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	silent := func(_ http.ResponseWriter, r *http.Request, _ []byte, _ http.Header) { <-r.Context().Done() }
	tests := map[string]struct {
		part   string
		answer func(http.ResponseWriter, *http.Request, []byte, http.Header)
		want   error
	}{
		"another manifest of a chart":    {"/charts/hello/manifests/", other, nil},
		"another manifest of an image":   {"/images/many/manifests/", other, nil},
		"half a manifest":                {"/charts/hello/manifests/", half, nil},
		"another chart":                  {"/charts/hello/blobs/", other, transfer.ErrDamaged},
		"half a chart":                   {"/charts/hello/blobs/", half, nil},
		"a chart that breaks off":        {"/charts/hello/blobs/", breakOff, nil},
		"more than a chart":              {"/charts/hello/blobs/", more, nil},
		"another layer of an image":      {"/images/server/blobs/", other, transfer.ErrDamaged},
		"half a layer of an image":       {"/images/server/blobs/", half, nil},
		"a layer that stalls":            {"/images/server/blobs/", stall, transfer.ErrStalled},
		"a chart that stalls":            {"/charts/hello/blobs/", stall, transfer.ErrStalled},
		"a manifest that does not come":  {"/images/many/manifests/", silent, transfer.ErrStalled},
		"a manifest that ends in a void": {"/images/many/manifests/", stall, transfer.ErrStalled},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, making{excludes: bundle.DefaultExcludes})
			front := newLiar(t, v.Host)
			front.modifyResponses(v.Host, tt.part, tt.answer)
			options := v.options
			options.Address = front.host
			patient := options
			if errors.Is(tt.want, transfer.ErrStalled) {
				options.Stall = 500 * time.Millisecond
			}
			to := open(t, transfer.Options{Address: artifacttest.NewRegistry(t, artifacttest.RegistryOptions{}).Host, PlainHTTP: true})
			_, err := copyTo(t, open(t, options), to)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if _, err := transfer.Fetch(t.Context(), to, transfer.Ref{Repository: repository, Tag: tag}); !errors.Is(err, transfer.ErrNotFound) {
				t.Errorf("half a copy can be used: %v", err)
			}
			front.change.Store(nil)
			_, err = copyTo(t, open(t, patient), to)
			must(t, err)
			v.complete(t, to)
		})
	}
}

func TestTargetWithWrongContentIsDetected(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	front := newLiar(t, r.Host)
	front.modifyResponses(r.Host, "/charts/hello/blobs/", func(w http.ResponseWriter, _ *http.Request, honest []byte, _ http.Header) {
		changed := bytes.Clone(honest)
		changed[0] ^= 1
		_, _ = w.Write(changed)
	})
	to := open(t, transfer.Options{Address: front.host, PlainHTTP: true})
	if _, err := copyTo(t, open(t, v.options), to); !errors.Is(err, transfer.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if _, err := transfer.Fetch(t.Context(), to, transfer.Ref{Repository: repository, Tag: tag}); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("a damaged copy can be used: %v", err)
	}
}

func TestStalledTargetTimesOut(t *testing.T) {
	t.Parallel()
	v := newVendor(t, making{excludes: bundle.DefaultExcludes})
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	r.Hang()
	to := open(t, transfer.Options{Address: r.Host, PlainHTTP: true, Stall: 300 * time.Millisecond})
	if _, err := copyTo(t, open(t, v.options), to); !errors.Is(err, transfer.ErrStalled) {
		t.Errorf("got %v", err)
	}
}

func TestRegistriesWithCredentials(t *testing.T) {
	t.Parallel()
	for name, tokens := range map[string]bool{"password": false, "tokens": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVendor(t, making{excludes: bundle.DefaultExcludes})
			r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{
				ServerOptions: artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "canary"}, Tokens: tokens,
			})
			for problem, o := range map[string]transfer.Options{
				"no CA":          {Username: "drover", Password: "canary"},
				"wrong password": {Username: "drover", Password: "canary-of-old", CA: r.CA},
			} {
				o.Address = r.Host
				if _, err := copyTo(t, open(t, v.options), open(t, o)); err == nil || strings.Contains(err.Error(), "canary") {
					t.Errorf("%s: %v", problem, err)
				}
			}
			to := open(t, transfer.Options{Address: r.Host + "/mirror", Username: "drover", Password: "canary", CA: r.CA})
			_, err := copyTo(t, open(t, v.options), to)
			must(t, err)
			v.complete(t, to)
		})
	}
}

func TestPlainHTTPRequiresTheOption(t *testing.T) {
	t.Parallel()
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	_, err := transfer.Fetch(t.Context(), open(t, transfer.Options{Address: r.Host}), transfer.Ref{Repository: repository, Tag: tag})
	if err == nil || len(r.Requests()) > 0 {
		t.Errorf("got %v and requests %v", err, r.Requests())
	}
}

func TestRegistryAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "oci://", "/"} {
		if _, err := transfer.Open(transfer.Options{Address: address}); err == nil {
			t.Errorf("%q was opened", address)
		}
	}
	if _, err := transfer.Open(transfer.Options{Address: "a.example", CA: []byte("x")}); err == nil {
		t.Error("a CA that is none was taken")
	}
	r := open(t, transfer.Options{Address: "oci://a.example/b/"})
	if r.String() != "oci://a.example/b" {
		t.Errorf("it is %s", r)
	}
	if _, err := r.Manifest(t.Context(), transfer.Ref{Repository: "UPPER", Tag: "x"}); err == nil || !strings.Contains(err.Error(), "invalid repository name") {
		t.Errorf("got %v", err)
	}
}
