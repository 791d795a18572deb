package artifact_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
)

func TestRepositoryAccess(t *testing.T) {
	secured := artifacttest.ServerOptions{TLS: true, Username: "me", Password: "my-secret"}
	repository := artifacttest.NewRepository(t, secured)
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	repository.Publish("team/cni", "1.0.0", chart)
	for _, c := range []struct {
		name   string
		access artifact.Access
		fails  error
	}{
		{name: "user name, password and CA", access: repository.Access()},
		{name: "a docker config", access: artifact.Access{DockerConfig: repository.DockerConfig(t), CA: repository.CA}},
		{name: "without a check of the server", access: artifact.Access{Username: "me", Password: "my-secret", SkipTLSVerify: true}},
		{name: "the wrong password", access: artifact.Access{Username: "me", Password: "other-secret", CA: repository.CA}, fails: artifact.ErrForbidden},
		{name: "no password", access: artifact.Access{CA: repository.CA}, fails: artifact.ErrForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := open(t, func(o *artifact.Options) { o.PlainHTTP = false })
			ref := artifact.Ref{URL: repository.URL, Name: "team/cni", Version: "1.0.0", Access: c.access}
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
	t.Run("in the URL", func(t *testing.T) {
		withUser := strings.Replace(repository.URL, "://", "://me:my-secret@", 1)
		open(t).get(t, artifact.Ref{URL: withUser, Name: "team/cni", Access: artifact.Access{CA: repository.CA}})
	})
	t.Run("an unknown CA", func(t *testing.T) {
		_, err := open(t).Resolve(t.Context(), artifact.Ref{URL: repository.URL, Name: "team/cni"})
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got error %v, want one that contains %q", err, "certificate")
		}
	})
}

func TestPlainHTTPIsRejectedByDefault(t *testing.T) {
	plain := artifacttest.NewRepository(t, artifacttest.ServerOptions{})
	store := open(t, func(o *artifact.Options) { o.PlainHTTP = false })
	store.fails(t, artifact.Ref{URL: plain.URL, Name: "cni"}, artifact.ErrInvalid)
	redirecting := httptest.NewTLSServer(http.RedirectHandler(plain.URL+"/index.yaml", http.StatusFound))
	defer redirecting.Close()
	store.fails(t, artifact.Ref{URL: redirecting.URL, Name: "cni", Access: artifact.Access{SkipTLSVerify: true}}, artifact.ErrInvalid)
	if n := len(plain.Requests()); n != 0 {
		t.Errorf("%d requests over plain HTTP", n)
	}
}

// thief is a server that records the credentials of requests.
func thief(t *testing.T, archive []byte) (*httptest.Server, *[]string) {
	t.Helper()
	var stolen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header := r.Header.Get("Authorization"); header != "" {
			stolen = append(stolen, header)
		}
		_, _ = w.Write(archive)
	}))
	t.Cleanup(server.Close)
	return server, &stolen
}

func TestCredentialsAreSentOnlyToTheirHost(t *testing.T) {
	chart := artifacttest.Chart(t, "cni", "1.0.0", nil)
	other, stolen := thief(t, chart)
	repository := artifacttest.NewRepository(t, artifacttest.ServerOptions{Username: "me", Password: "my-secret"})
	repository.PublishAs("absolute", "1.0.0", "", other.URL+"/absolute.tgz")
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			http.Redirect(w, r, other.URL+"/redirected.tgz", http.StatusFound) // Another port of the same address.
			return
		}
		_, _ = w.Write([]byte(`{"entries":{"redirected":[{"version":"1.0.0","urls":["redirected.tgz"]}]}}`))
	}))
	defer redirecting.Close()
	store := open(t)
	store.get(t, artifact.Ref{URL: repository.URL, Name: "absolute", Access: repository.Access()})
	store.get(t, artifact.Ref{URL: redirecting.URL, Name: "redirected", Access: repository.Access()})
	if len(*stolen) != 0 {
		t.Errorf("another server received %q", *stolen)
	}
}

func TestErrorsContainNoQuery(t *testing.T) {
	other, _ := thief(t, nil)
	var queries []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		http.Redirect(w, r, strings.Replace(other.URL, "http://", "https://", 1)+"/?signature=hidden", http.StatusFound)
	}))
	defer server.Close()
	_, err := open(t).Resolve(t.Context(), artifact.Ref{URL: server.URL + "?token=hidden", Name: "cni"})
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v", err)
	}
	if len(queries) != 1 || queries[0] != "token=hidden" {
		t.Errorf("queries of requests are %q", queries)
	}
}
