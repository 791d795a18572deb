package forge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	token  = "a-secret-token-of-tests"
	commit = "0123456789abcdef0123456789abcdef01234567"
)

// recorded is a request that changes something.
type recorded struct {
	Path string
	Body map[string]string
}

// server accepts statuses as the three forges document it. GitLab's also answers with the statuses
// that it has, and rejects a transition into the current state.
type server struct {
	header, value string
	requests      []recorded
	current       string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(s.header) != s.value {
		http.Error(w, `{"message": "401 Unauthorized"}`, http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodGet {
		list := []map[string]string{}
		if s.current != "" && strings.HasSuffix(r.URL.Path, "/statuses") && r.URL.Query().Get("name") == "drover/dev" {
			list = append(list, map[string]string{"status": s.current, "name": "drover/dev"})
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	}
	got := recorded{Path: r.URL.EscapedPath()}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&got.Body) != nil {
		http.Error(w, `{"message": "bad request"}`, http.StatusBadRequest)
		return
	}
	if s.current != "" && got.Body["state"] == s.current {
		http.Error(w, `{"message": "Cannot transition status"}`, http.StatusBadRequest)
		return
	}
	s.requests = append(s.requests, got)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{}`))
}

func start(t *testing.T, s *server, o Options) Forge {
	t.Helper()
	serving := httptest.NewServer(s)
	t.Cleanup(serving.Close)
	o.BaseURL += serving.URL
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var ready = Status{Commit: commit, State: Failure, Context: "drover/dev", Description: "2 of 3\nmachines", TargetURL: "https://example.com/dev"}

func TestStatusesInTheFormatOfEachForge(t *testing.T) {
	for kind, test := range map[Kind]struct {
		header, value, repository string
		want                      recorded
	}{
		GitHub: {"Authorization", "Bearer " + token, "acme/fleet", recorded{
			"/repos/acme/fleet/statuses/" + commit,
			map[string]string{"state": "failure", "context": "drover/dev", "description": "2 of 3 machines", "target_url": "https://example.com/dev"},
		}},
		Gitea: {"Authorization", "token " + token, "acme/fleet", recorded{
			"/repos/acme/fleet/statuses/" + commit,
			map[string]string{"state": "failure", "context": "drover/dev", "description": "2 of 3 machines", "target_url": "https://example.com/dev"},
		}},
		GitLab: {"PRIVATE-TOKEN", token, "acme/infra/fleet", recorded{
			"/projects/acme%2Finfra%2Ffleet/statuses/" + commit,
			map[string]string{"state": "failed", "name": "drover/dev", "description": "2 of 3 machines", "target_url": "https://example.com/dev"},
		}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := &server{header: test.header, value: test.value}
			if err := start(t, s, Options{Kind: kind, Repository: test.repository, Token: token}).SetStatus(t.Context(), ready); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]recorded{test.want}, s.requests); diff != "" {
				t.Error(diff)
			}
			err := start(t, s, Options{Kind: kind, Repository: test.repository, Token: "hunter2"}).SetStatus(t.Context(), ready)
			if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "check the token") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestGitLabIsNotAskedForTheStateThatItHas(t *testing.T) {
	s := &server{header: "PRIVATE-TOKEN", value: token, current: "failed"}
	f := start(t, s, Options{Kind: GitLab, Repository: "acme/fleet", Token: token})
	if err := f.SetStatus(t.Context(), ready); err != nil || len(s.requests) > 0 {
		t.Errorf("error %v, requests %v", err, s.requests)
	}
	changed := ready
	changed.State = Success
	if err := f.SetStatus(t.Context(), changed); err != nil || len(s.requests) != 1 {
		t.Errorf("error %v, requests %v", err, s.requests)
	}
}

func TestInvalidStatusesAreRejectedBeforeTheyAreSent(t *testing.T) {
	s := &server{}
	for name, spoil := range map[string]func(*Status){
		"a short commit": func(s *Status) { s.Commit = commit[:12] }, "a path": func(s *Status) { s.Commit = "../../user" },
		"an unknown state": func(s *Status) { s.State = "great" }, "no context": func(s *Status) { s.Context = "" },
		"a script": func(s *Status) { s.TargetURL = "javascript:alert(1)" },
	} {
		for _, kind := range []Kind{GitHub, GitLab, Gitea} {
			status := ready
			spoil(&status)
			err := start(t, s, Options{Kind: kind, Repository: "acme/fleet", Token: token}).SetStatus(t.Context(), status)
			if err == nil || !strings.Contains(err.Error(), "setting a status: ") {
				t.Errorf("%s, %s: error %v", name, kind, err)
			}
		}
	}
	long := ready
	long.Description = strings.Repeat("ä", 200)
	if got, err := long.check(); err != nil || len(got.Description) > maxDescription {
		t.Errorf("description of %d bytes, error %v", len(got.Description), err)
	}
}

func TestInvalidForgesAreRejected(t *testing.T) {
	for name, o := range map[string]Options{
		"unknown kind":   {Kind: "cvs", Repository: "a/b", BaseURL: "https://example.com"},
		"no owner":       {Kind: GitHub, Repository: "b", BaseURL: "https://example.com"},
		"no name":        {Kind: GitHub, Repository: "a/", BaseURL: "https://example.com"},
		"nested owner":   {Kind: Gitea, Repository: "a/b/c", BaseURL: "https://example.com"},
		"not encrypted":  {Kind: GitLab, Repository: "a/b", BaseURL: "http://example.com"},
		"no URL":         {Kind: GitLab, Repository: "a/b"},
		"CA of nonsense": {Kind: GitLab, Repository: "a/b", BaseURL: "https://example.com", CA: []byte("x")},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
