// Package github asks the REST API of GitHub, or of a GitHub Enterprise server, what a command
// needs to know before it commits: whom a token belongs to, whether that user may own a repository,
// and whether the repository exists. It creates missing repositories, always private ones.
//
// It never reads or changes the content of a repository, which is what internal/git is for. Start
// with New.
package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/git/rest"
)

const (
	defaultBaseURL = "https://api.github.com"
	apiVersion     = "2022-11-28"

	// scopeRepositories is the scope of a classic token that may use private repositories.
	scopeRepositories = "repo"
)

// Options configure a Client.
type Options struct {
	// BaseURL is https://api.github.com by default, and https://HOST/api/v3 for an Enterprise
	// server.
	BaseURL string
	Token   string
	// CA has certificates in PEM, which are trusted besides those of the system.
	CA []byte
}

// Client asks GitHub on behalf of the owner of a token.
type Client struct{ rest *rest.Client }

// New returns a client without connecting to GitHub.
func New(o Options) (*Client, error) {
	if o.BaseURL == "" {
		o.BaseURL = defaultBaseURL
	}
	c, err := rest.New(rest.Options{BaseURL: o.BaseURL, Header: Header(o.Token), CA: o.CA, Secret: o.Token})
	if err != nil {
		return nil, fmt.Errorf("configuring GitHub: %w", err)
	}
	return &Client{rest: c}, nil
}

// Header returns what GitHub expects in each request.
func Header(token string) http.Header {
	return http.Header{
		"Accept":               {"application/vnd.github+json"},
		"Authorization":        {"Bearer " + token},
		"User-Agent":           {"drover"},
		"X-Github-Api-Version": {apiVersion},
	}
}

// Token is what GitHub knows about a token.
type Token struct {
	// Login is the user that the token belongs to.
	Login string
	// Scopes are those of a classic token. Fine-grained tokens have none, and only an attempt shows
	// what they permit.
	Scopes []string
	// Classic is set for tokens with scopes.
	Classic bool
}

// LacksRepositories reports whether the token is known not to permit access to private
// repositories.
func (t Token) LacksRepositories() bool {
	return t.Classic && !slices.Contains(t.Scopes, scopeRepositories)
}

// Token returns whom the token belongs to.
func (c *Client) Token(ctx context.Context) (Token, error) {
	var user struct {
		Login string `json:"login"`
	}
	header, err := c.rest.Do(ctx, rest.Request{Doing: "checking the GitHub token", Method: http.MethodGet, Path: []string{"user"}}, &user)
	if err != nil {
		return Token{}, err
	}
	t := Token{Login: user.Login}
	if _, t.Classic = header["X-Oauth-Scopes"]; t.Classic {
		t.Scopes = strings.FieldsFunc(header.Get("X-Oauth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	}
	return t, nil
}

// IsMember reports whether the owner of the token is an active member of an organization.
func (c *Client) IsMember(ctx context.Context, organization string) (bool, error) {
	var membership struct {
		State string `json:"state"`
	}
	_, err := c.rest.Do(ctx, rest.Request{
		Doing:  fmt.Sprintf("checking membership in organization %q", organization),
		Method: http.MethodGet, Path: []string{"user", "memberships", "orgs", organization},
	}, &membership)
	if rest.HasStatus(err, http.StatusNotFound) {
		return false, nil
	}
	return membership.State == "active", err
}
