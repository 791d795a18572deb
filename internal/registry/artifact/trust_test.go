package artifact_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestTrustIsTheDefaultAccess(t *testing.T) {
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	registry := artifacttest.NewRegistry(t, secured("me", false))
	registry.Push(t, artifacttest.Package{Name: "cni", Version: "1.0.0", Archive: chart})
	all, ca := registry.Access(), artifact.Access{CA: registry.CA}
	for _, c := range []struct {
		name    string
		trusted map[string]artifact.Access
		own     artifact.Access
		fails   bool
	}{
		{name: "nobody is trusted", fails: true},
		{name: "another is trusted", trusted: map[string]artifact.Access{"127.0.0.1:1": all}, fails: true},
		{name: "the server and its credentials", trusted: map[string]artifact.Access{registry.Host: all}},
		{name: "the server only", trusted: map[string]artifact.Access{registry.Host: ca}, fails: true},
		{
			name: "the server, with credentials of one's own", trusted: map[string]artifact.Access{registry.Host: ca},
			own: artifact.Access{Username: all.Username, Password: all.Password},
		},
		{name: "the credentials, with a CA of one's own", trusted: map[string]artifact.Access{registry.Host: {Username: all.Username, Password: all.Password}}, own: ca},
		{
			name: "wrong credentials of one's own are not replaced", trusted: map[string]artifact.Access{registry.Host: all},
			own: artifact.Access{Username: "me", Password: "other-secret"}, fails: true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := open(t, func(o *artifact.Options) { o.PlainHTTP, o.Trust = false, c.trusted })
			_, err := store.Resolve(t.Context(), artifact.Ref{URL: registry.URL, Name: "cni", Version: "1.0.0", Access: c.own})
			if (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
		})
	}
}
