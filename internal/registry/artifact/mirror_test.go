package artifact_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestMirrorIsTriedFirstForDigests(t *testing.T) {
	tls := artifacttest.RegistryOptions{ServerOptions: artifacttest.ServerOptions{TLS: true}}
	far, near := artifacttest.NewRegistry(t, tls), artifacttest.NewRegistry(t, tls)
	push := func(r *artifacttest.Registry, version string) string {
		return r.Push(t, artifacttest.Package{Name: "hello", Version: version, Archive: artifacttest.Chart(t, "hello", version, nil)})
	}
	both, only := push(far, "1.0.0"), push(far, "2.0.0")
	push(near, "1.0.0")
	open := func() *artifact.Store {
		s, err := artifact.Open(artifact.Options{
			Dir: t.TempDir(), Mirrors: map[string]string{"*": near.Host}, Trust: map[string]artifact.Access{near.Host: near.Access()},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	get := func(s *artifact.Store, version string) error {
		ref := artifact.Ref{URL: far.URL, Name: "hello", Version: version, Access: far.Access()}
		resolved, err := s.Resolve(t.Context(), ref)
		if err == nil {
			_, err = s.Fetch(t.Context(), ref, resolved)
		}
		return err
	}
	s, before := open(), len(far.Requests())
	if err := get(s, both); err != nil || len(far.Requests()) != before {
		t.Errorf("error %v, %d requests to the registry", err, len(far.Requests())-before)
	}
	if err := get(s, only); err != nil || len(far.Requests()) == before {
		t.Errorf("missing in the mirror: %v", err)
	}
	asked := len(near.Requests())
	if err := get(s, only); err != nil || len(near.Requests()) != asked {
		t.Errorf("error %v, and the mirror got another request", err)
	}
	if err := get(s, "1.0.0"); err != nil || len(near.Requests()) != asked {
		t.Errorf("error %v, and the mirror got a request for a version", err)
	}
	s = open()
	near.Fail(http.StatusBadGateway)
	if err := get(s, both); err != nil {
		t.Errorf("failing mirror: %v", err)
	}
	far.Fail(http.StatusNotFound)
	err := get(open(), both)
	if !errors.Is(err, artifact.ErrNotFound) || !strings.Contains(err.Error(), "502") {
		t.Errorf("error is %v, want the errors of both", err)
	}
}
