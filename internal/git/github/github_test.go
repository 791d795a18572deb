package github

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// server behaves as GitHub's documentation says, for one user with one organization.
type server struct {
	mu sync.Mutex
	// scopes is nil for a fine-grained token.
	scopes []string
	// repositories by owner/name.
	repositories map[string]*Repository
	// created counts requests that create a repository.
	created int
	// race creates a repository right before a request does.
	race bool
}

const token = "ghp_a-secret-token-of-tests"

func start(t *testing.T, s *server) *Client {
	t.Helper()
	return startWith(t, s, token)
}

func startWith(t *testing.T, s *server, token string) *Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v3/user", func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, map[string]string{"login": "Jane"}) })
	mux.HandleFunc("GET /api/v3/user/memberships/orgs/{org}", s.membership)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}", s.get)
	mux.HandleFunc("POST /api/v3/user/repos", func(w http.ResponseWriter, r *http.Request) { s.create(w, r, "Jane") })
	mux.HandleFunc("POST /api/v3/orgs/{org}/repos", func(w http.ResponseWriter, r *http.Request) { s.create(w, r, r.PathValue("org")) })
	serving := httptest.NewServer(s.authenticate(mux))
	t.Cleanup(serving.Close)
	c, err := New(Options{BaseURL: serving.URL + "/api/v3", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func reply(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			reply(w, 401, map[string]string{"message": "Bad credentials"})
			return
		case r.Header.Get("X-GitHub-Api-Version") != apiVersion || r.Header.Get("User-Agent") == "" || r.Header.Get("Accept") != "application/vnd.github+json":
			reply(w, 400, map[string]string{"message": "missing headers"})
			return
		case s.scopes != nil:
			w.Header().Set("X-OAuth-Scopes", strings.Join(s.scopes, ", "))
		}
		next.ServeHTTP(w, r)
	})
}

func (s *server) membership(w http.ResponseWriter, r *http.Request) {
	states := map[string]string{"acme": "active", "invited": "pending"}
	state, ok := states[r.PathValue("org")]
	if !ok {
		reply(w, 404, map[string]string{"message": "Not Found"})
		return
	}
	reply(w, 200, map[string]string{"state": state, "role": "member"})
}

func (s *server) get(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.repositories[r.PathValue("owner")+"/"+r.PathValue("name")]; ok {
		reply(w, 200, found)
		return
	}
	reply(w, 404, map[string]string{"message": "Not Found"})
}

func (s *server) create(w http.ResponseWriter, r *http.Request, owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var body newRepository
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Name == "" {
		reply(w, 400, map[string]string{"message": "Problems parsing JSON"})
		return
	}
	name := owner + "/" + body.Name
	if s.race || s.repositories[name] != nil {
		s.repositories[name] = &Repository{DefaultBranch: "other"}
		reply(w, 422, map[string]string{"message": "Repository creation failed."})
		return
	}
	s.created++
	s.repositories[name] = &Repository{Private: body.Private, DefaultBranch: "main", CloneURL: "https://github.example.com/" + name + ".git"}
	reply(w, 201, s.repositories[name])
}

func TestTokenTellsUserAndScopes(t *testing.T) {
	for name, test := range map[string]struct {
		scopes []string
		want   Token
		lacks  bool
	}{
		"classic":                {[]string{"repo", "read:org"}, Token{Login: "Jane", Scopes: []string{"repo", "read:org"}, Classic: true}, false},
		"classic without access": {[]string{"public_repo"}, Token{Login: "Jane", Scopes: []string{"public_repo"}, Classic: true}, true},
		"classic without scopes": {[]string{}, Token{Login: "Jane", Classic: true, Scopes: []string{}}, true},
		"fine-grained":           {nil, Token{Login: "Jane"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := start(t, &server{scopes: test.scopes}).Token(t.Context())
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil || got.LacksRepositories() != test.lacks {
				t.Errorf("error %v: %s", err, diff)
			}
		})
	}
}

func TestOwnersAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		scopes []string
		owner  Owner
		says   string
	}{
		"the user":                  {nil, Owner{Name: "jane", Personal: true}, ""},
		"another user":              {nil, Owner{Name: "john", Personal: true}, `belongs to "Jane"`},
		"an organization":           {[]string{"repo"}, Owner{Name: "acme"}, ""},
		"a pending invitation":      {nil, Owner{Name: "invited"}, "not an active member"},
		"an unknown organization":   {nil, Owner{Name: "jane"}, "set personal if it is a user"},
		"a token without the scope": {[]string{"gist"}, Owner{Name: "acme"}, `lacks the scope "repo"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := start(t, &server{scopes: test.scopes}).CheckOwner(t.Context(), test.owner)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

func TestWrongTokensAreNotPrinted(t *testing.T) {
	c := startWith(t, &server{}, "hunter2")
	err := c.CheckOwner(t.Context(), Owner{Name: "acme"})
	if err == nil || !strings.Contains(err.Error(), "check the token") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v", err)
	}
}

func TestRepositoriesAreCreatedOnceAndPrivate(t *testing.T) {
	for name, owner := range map[string]Owner{"of a user": {Name: "Jane", Personal: true}, "of an organization": {Name: "acme"}} {
		t.Run(name, func(t *testing.T) {
			s := &server{repositories: map[string]*Repository{}}
			c := start(t, s)
			if _, err := c.Repository(t.Context(), owner.Name, "fleet"); !errors.Is(err, ErrNotFound) {
				t.Errorf("error %v", err)
			}
			for range 2 {
				got, err := c.EnsureRepository(t.Context(), owner, "fleet")
				if err != nil || !got.Private || got.DefaultBranch != "main" || s.created != 1 {
					t.Errorf("repository %+v, error %v, created %d", got, err, s.created)
				}
			}
		})
	}
}

func TestARepositoryThatSomebodyElseCreatesIsUsed(t *testing.T) {
	s := &server{repositories: map[string]*Repository{}, race: true}
	got, err := start(t, s).EnsureRepository(t.Context(), Owner{Name: "acme"}, "fleet")
	if err != nil || got.DefaultBranch != "other" || s.created != 0 {
		t.Errorf("repository %+v, error %v", got, err)
	}
}
