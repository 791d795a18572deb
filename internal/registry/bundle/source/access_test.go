package source_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

// locked is a registry that requires TLS and a password.
func locked(t *testing.T) (*artifacttest.Registry, source.Wanted) {
	t.Helper()
	r := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{
		ServerOptions: artifacttest.ServerOptions{TLS: true, Username: "drover", Password: "canary"},
	})
	publish(t, r, latest, text("v1-36-1"))
	return r, source.Wanted{Registry: r.Host, Repository: repository, Tag: latest}
}

func TestRegistryAuthenticationMethods(t *testing.T) {
	r, w := locked(t)
	open := func(access artifact.Access) (source.Options, map[string]artifact.Access) {
		return source.Options{}, map[string]artifact.Access{r.Host: access}
	}
	for name, options := range map[string]func() (source.Options, map[string]artifact.Access){
		"CA and password": func() (source.Options, map[string]artifact.Access) { return open(r.Access()) },
		"CA and a config": func() (source.Options, map[string]artifact.Access) {
			return open(artifact.Access{CA: r.CA, DockerConfig: r.DockerConfig(t)})
		},
		"insecure alone": func() (source.Options, map[string]artifact.Access) {
			return open(artifact.Access{SkipTLSVerify: true, DockerConfig: r.DockerConfig(t)})
		},
		"by the manager's": func() (source.Options, map[string]artifact.Access) {
			return source.Options{Trust: map[string]artifact.Access{r.Host: r.Access()}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, access := options()
			w.Access = access
			if _, err := newBundles(t, o).Get(t.Context(), w); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAccessErrorsOmitSecrets(t *testing.T) {
	r, w := locked(t)
	for name, access := range map[string]artifact.Access{
		"nothing":        {},
		"no CA":          {DockerConfig: r.DockerConfig(t)},
		"wrong password": {CA: r.CA, Username: "drover", Password: "canary-of-old"},
		"broken config":  {CA: r.CA, DockerConfig: []byte(`{"canary`)},
	} {
		t.Run(name, func(t *testing.T) {
			w.Access = map[string]artifact.Access{r.Host: access}
			_, err := newBundles(t, source.Options{}).Get(t.Context(), w)
			if err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("Get() = %v", err)
			}
		})
	}
}

func TestCachedResultsRequireTheSameCredentials(t *testing.T) {
	r, w := locked(t)
	b := newBundles(t, source.Options{})
	w.MaxAge = time.Hour
	w.Access = map[string]artifact.Access{r.Host: r.Access()}
	if _, err := b.Get(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	w.Access = map[string]artifact.Access{r.Host: {CA: r.CA}}
	if _, err := b.Get(t.Context(), w); !errors.Is(err, artifact.ErrForbidden) {
		t.Errorf("without a password: %v", err)
	}
}

func TestUntrustedCertificateIsReportedWithPlainHTTP(t *testing.T) {
	_, w := locked(t)
	_, err := newBundles(t, source.Options{PlainHTTP: true}).Get(t.Context(), w)
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Get() = %v", err)
	}
}

func TestPlainHTTPMustBeAllowed(t *testing.T) {
	r, w := plain(t)
	before := len(r.Requests())
	if _, err := newBundles(t, source.Options{}).Get(t.Context(), w); err == nil {
		t.Error("a registry without TLS was used")
	}
	if len(r.Requests()) != before {
		t.Error("a request went out in the clear")
	}
}

func TestMirrorIsTriedFirst(t *testing.T) {
	original, w := plain(t)
	mirror := artifacttest.NewRegistry(t, artifacttest.RegistryOptions{})
	publish(t, mirror, latest, text("v1-36-7"))
	w.Registry, w.Repository = original.Host+"/charts", "bundles"
	options := func(key, to string) source.Options {
		return source.Options{PlainHTTP: true, Mirrors: map[string]string{key: to}}
	}
	for name, o := range map[string]source.Options{
		"of the registry": options(original.Host, mirror.Host), "of all": options("*", mirror.Host), "with a scheme": options("*", "https://"+mirror.Host+"/"),
	} {
		t.Run(name, func(t *testing.T) {
			before := len(original.Requests())
			found, err := newBundles(t, o).Get(t.Context(), w)
			if err != nil || found.Bundle.Name != "v1-36-7" {
				t.Errorf("Get() = %v, %v", found, err)
			}
			if len(original.Requests()) != before {
				t.Error("got a request to the original registry, want none")
			}
		})
	}
	t.Run("that fails", func(t *testing.T) {
		b := newBundles(t, options("*", mirror.Host))
		mirror.Fail(http.StatusBadGateway)
		found, err := b.Get(t.Context(), w)
		if err != nil || found.Bundle.Name != "v1-36-1" {
			t.Errorf("Get() = %v, %v", found, err)
		}
		original.Fail(http.StatusInternalServerError)
		_, err = b.Get(t.Context(), w)
		if err == nil || !strings.Contains(err.Error(), "502") || !strings.Contains(err.Error(), "500") {
			t.Errorf("Get() = %v, want both failures", err)
		}
	})
}

func TestChartLocations(t *testing.T) {
	b := newBundles(t, source.Options{Default: "own.test/drover", Mirrors: map[string]string{"far.test": "near.test:5000/far", "*": "own.test"}})
	for name, test := range map[string]struct{ registry, repository, url, chart string }{
		"default":       {"", "team/hello", "oci://own.test/drover/team", "hello"},
		"mirrored":      {"far.test/vendor", "hello", "oci://far.test/vendor", "hello"},
		"all others":    {"else.test", "a/b/c", "oci://else.test/a/b", "c"},
		"with a scheme": {"https://far.test", "hello", "oci://far.test", "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			if url, chart := b.ChartPlace(test.registry, test.repository); url != test.url || chart != test.chart {
				t.Errorf("ChartPlace() = %q, %q, want %q, %q", url, chart, test.url, test.chart)
			}
		})
	}
}
