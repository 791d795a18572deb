package artifact_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestRegistryAccess(t *testing.T) {
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	for _, c := range []struct {
		name    string
		options artifacttest.RegistryOptions
		access  func(*artifacttest.Registry) artifact.Access
		secure  bool
		fails   error
	}{
		{name: "open, in the clear", access: (*artifacttest.Registry).Access},
		{name: "open, with TLS", options: secured("", false), access: (*artifacttest.Registry).Access, secure: true},
		{name: "open, with TLS, where plain HTTP is allowed", options: secured("", false), access: (*artifacttest.Registry).Access},
		{name: "user name and password", options: secured("me", false), access: (*artifacttest.Registry).Access, secure: true},
		{name: "a docker config", options: secured("me", false), access: withConfig(t), secure: true},
		{name: "tokens", options: secured("me", true), access: withConfig(t), secure: true},
		{name: "without a check of the server", options: secured("me", true), access: unchecked, secure: true},
		{name: "the wrong password", options: secured("me", false), access: wrongPassword, secure: true, fails: artifact.ErrForbidden},
		{name: "no token for the wrong password", options: secured("me", true), access: wrongPassword, secure: true, fails: artifact.ErrForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			registry := artifacttest.NewRegistry(t, c.options)
			registry.Push(t, artifacttest.Package{Name: "team/cni", Version: "1.0.0", Archive: chart})
			store := open(t, func(o *artifact.Options) { o.PlainHTTP = !c.secure })
			ref := artifact.Ref{URL: registry.URL, Name: "team/cni", Version: "1.0.0", Access: c.access(registry)}
			if c.fails != nil {
				if err := store.fails(t, ref, c.fails); strings.Contains(err.Error(), "secret") {
					t.Errorf("error %q contains a password", err)
				}
				return
			}
			if _, data := store.get(t, ref); !bytes.Equal(data, chart) {
				t.Error("the content differs")
			}
		})
	}
}

func TestArchivesMayBeLargerThanDocuments(t *testing.T) {
	large := bytes.Repeat([]byte("archive"), bounded.MaxDocument/4)
	for name, tokens := range map[string]bool{"without tokens": false, "with tokens": true} {
		registry := artifacttest.NewRegistry(t, secured("me", tokens))
		registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: large})
		ref := artifact.Ref{URL: registry.URL, Name: "cni", Version: "1.0.0", Access: registry.Access()}
		if _, data := open(t).get(t, ref); !bytes.Equal(data, large) {
			t.Errorf("%s: the content differs", name)
		}
	}
}

// The library uses plain HTTP for this machine and private networks by default.
func TestPlainHTTPToRegistryIsRejectedByDefault(t *testing.T) {
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: artifacttest.Chart(t, "cni", "1.0.0", nil)})
	before := len(registry.Requests())
	store := open(t, func(o *artifact.Options) { o.PlainHTTP = false })
	ref := artifact.Ref{URL: registry.URL, Name: "cni", Version: "1.0.0", Access: artifact.Access{Username: "me", Password: "my-secret"}}
	if _, err := store.Resolve(t.Context(), ref); err == nil || !strings.Contains(err.Error(), "HTTPS") {
		t.Errorf("got error %v, want one that contains %q", err, "HTTPS")
	}
	if n := len(registry.Requests()) - before; n != 0 {
		t.Errorf("%d requests over plain HTTP", n)
	}
}

func secured(username string, tokens bool) artifacttest.RegistryOptions {
	options := artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{TLS: true}, Tokens: tokens}
	if username != "" {
		options.Username, options.Password = username, "my-secret"
	}
	return options
}

func withConfig(t *testing.T) func(*artifacttest.Registry) artifact.Access {
	return func(r *artifacttest.Registry) artifact.Access {
		return artifact.Access{DockerConfig: r.DockerConfig(t), CA: r.CA}
	}
}

func unchecked(r *artifacttest.Registry) artifact.Access {
	access := r.Access()
	access.CA, access.SkipTLSVerify = nil, true
	return access
}

func wrongPassword(r *artifacttest.Registry) artifact.Access {
	access := r.Access()
	access.Password = "other-secret"
	return access
}

func TestResolveInRegistry(t *testing.T) {
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	for _, version := range []string{"1.0.0", "1.1.0+build.7", "v1.2.0", "2.0.0-rc.1", "latest", "7654321"} {
		registry.Push(t, artifacttest.Package{
			Name: "cni", Version: version, Archive: artifacttest.Chart(t, "cni", version, nil),
		})
	}
	byDigest := registry.Push(t, artifacttest.Package{Name: "cni", Version: "0.9.0", Archive: artifacttest.Chart(t, "cni", "0.9.0", nil)})
	for _, c := range []struct {
		wanted, version, content string
		lists                    bool
		fails                    error
	}{
		{wanted: "", version: "v1.2.0", lists: true},
		{wanted: "1.0.0", version: "1.0.0"},
		{wanted: "v1.0.0", version: "1.0.0"},
		{wanted: "1.2.0", version: "v1.2.0"},
		{wanted: "~1.1", version: "1.1.0+build.7", lists: true},
		{wanted: "1.1.0+build.7", version: "1.1.0+build.7"},
		{wanted: "latest", version: "latest", lists: true},
		{wanted: byDigest, version: byDigest, content: "0.9.0"},
		{wanted: "9.9.9", fails: artifact.ErrNotFound},
		{wanted: "^9", lists: true, fails: artifact.ErrNotFound},
	} {
		t.Run("version "+c.wanted, func(t *testing.T) {
			store := open(t)
			listed := registry.Count("/tags/list")
			ref := artifact.Ref{URL: registry.URL, Name: "cni", Version: c.wanted}
			if c.fails != nil {
				store.fails(t, ref, c.fails)
			} else {
				if c.content == "" {
					c.content = c.version
				}
				resolved, data := store.get(t, ref)
				if resolved.Version != c.version || !bytes.Equal(data, artifacttest.Chart(t, "cni", c.content, nil)) {
					t.Errorf("resolved to %v", resolved)
				}
			}
			if lists := registry.Count("/tags/list") > listed; lists != c.lists {
				t.Errorf("tags were listed: %v", lists)
			}
		})
	}
	open(t).fails(t, artifact.Ref{URL: registry.URL, Name: "csi"}, artifact.ErrNotFound)
}

func TestMovedTagIsResolvedAgain(t *testing.T) {
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	old, moved := artifacttest.Chart(t, "cni", "1.0.0", nil), artifacttest.Chart(t, "cni", "1.1.0", nil)
	registry.Push(t, artifacttest.Package{Name: "cni", Version: "latest", Archive: old})
	store := open(t)
	ref := artifact.Ref{URL: registry.URL, Name: "cni", Version: "latest"}
	before, _ := store.get(t, ref)
	registry.Push(t, artifacttest.Package{Name: "cni", Version: "latest", Archive: moved})
	store.pass(every)
	if _, data := store.get(t, ref); !bytes.Equal(data, moved) {
		t.Error("the tag was resolved to the old content")
	}
	if data, err := open(t).Fetch(t.Context(), ref, before); err != nil || !bytes.Equal(data, old) {
		t.Errorf("fetching the old content: %v", err)
	}
}

func TestMediaTypes(t *testing.T) {
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	archive := artifacttest.Archive(t, map[string]string{"kustomization.yaml": "resources: []"})
	for name, c := range map[string]struct {
		mediaType types.MediaType
		fails     error
	}{
		"chart": {mediaType: artifacttest.HelmChart}, "flux": {mediaType: artifacttest.FluxContent}, "layer": {mediaType: types.OCILayer},
		"other": {mediaType: "text/plain", fails: artifact.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Push(t, artifacttest.Package{Name: name, Version: "1.0.0", Archive: archive, MediaType: c.mediaType})
			ref := artifact.Ref{URL: registry.URL, Name: name, Version: "1.0.0"}
			if c.fails != nil {
				open(t).fails(t, ref, c.fails)
			} else if _, data := open(t).get(t, ref); !bytes.Equal(data, archive) {
				t.Error("the content differs")
			}
		})
	}
}

func TestUnreachableRegistry(t *testing.T) {
	registry := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: artifacttest.Chart(t, "cni", "1.0.0", nil)})
	store := open(t)
	newest := artifact.Ref{URL: registry.URL, Name: "cni"}
	registry.Fail(http.StatusBadGateway)
	if _, err := store.Resolve(t.Context(), newest); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("got error %v, want one that contains %q", err, "502")
	}
	registry.Resume()
	want := store.resolve(t, newest)
	registry.Fail(http.StatusBadGateway)
	store.pass(every)
	if got := store.resolve(t, newest); got != want {
		t.Errorf("resolved to %v, want %v", got, want)
	}
	store.pass(5 * every)
	if _, err := store.Resolve(t.Context(), newest); err == nil {
		t.Error("a stale answer was used too long")
	}
}
