package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/drover-dev/drover/internal/git/rest"
)

// Owner is the user or the organization that a repository belongs to.
type Owner struct {
	Name string
	// Personal is set for a user, who must be the owner of the token.
	Personal bool
}

// Repository is what GitHub knows about a repository.
type Repository struct {
	Private       bool   `json:"private"`
	DefaultBranch string `json:"default_branch"`
	// CloneURL is its URL for HTTPS.
	CloneURL string `json:"clone_url"`
	// Permissions are those of the owner of the token.
	Permissions Permissions `json:"permissions"`
}

// Permissions on a repository.
type Permissions struct {
	Push bool `json:"push"`
}

// ErrNotFound means that a repository doesn't exist, or is hidden from the owner of the token.
var ErrNotFound = errors.New("repository not found")

// CheckOwner fails if repositories of an owner can't be used with the token.
func (c *Client) CheckOwner(ctx context.Context, owner Owner) error {
	token, err := c.Token(ctx)
	if err != nil {
		return err
	}
	if token.LacksRepositories() {
		return fmt.Errorf("checking the GitHub token of %q: it lacks the scope %q", token.Login, scopeRepositories)
	}
	if owner.Personal {
		if !strings.EqualFold(owner.Name, token.Login) {
			return fmt.Errorf("checking owner %q: the GitHub token belongs to %q; use a token of the owner", owner.Name, token.Login)
		}
		return nil
	}
	member, err := c.IsMember(ctx, owner.Name)
	if err == nil && !member {
		return fmt.Errorf("checking owner %q: %q is not an active member of this organization; set personal if it is a user", owner.Name, token.Login)
	}
	return err
}

// Repository returns a repository or ErrNotFound.
func (c *Client) Repository(ctx context.Context, owner, name string) (Repository, error) {
	var r Repository
	doing := fmt.Sprintf("reading repository \"%s/%s\"", owner, name)
	_, err := c.rest.Do(ctx, rest.Request{Doing: doing, Method: http.MethodGet, Path: []string{"repos", owner, name}}, &r)
	if rest.HasStatus(err, http.StatusNotFound) {
		return Repository{}, fmt.Errorf("%s: %w", doing, ErrNotFound)
	}
	return r, err
}

// newRepository is the body of a request that creates a repository.
type newRepository struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Private     bool   `json:"private"`
}

// EnsureRepository returns a repository and creates it if it doesn't exist: private, and without
// any commit. A repository that exists is never changed.
func (c *Client) EnsureRepository(ctx context.Context, owner Owner, name string) (Repository, error) {
	r, err := c.Repository(ctx, owner.Name, name)
	if !errors.Is(err, ErrNotFound) {
		return r, err
	}
	path := []string{"orgs", owner.Name, "repos"}
	if owner.Personal {
		path = []string{"user", "repos"}
	}
	_, err = c.rest.Do(ctx, rest.Request{
		Doing:  fmt.Sprintf("creating repository \"%s/%s\"", owner.Name, name),
		Method: http.MethodPost, Path: path,
		Body: newRepository{Name: name, Description: "Cluster configuration, managed by Drover", Private: true},
	}, &r)
	if rest.HasStatus(err, http.StatusUnprocessableEntity) { // Somebody else may have created it.
		if existing, again := c.Repository(ctx, owner.Name, name); again == nil {
			return existing, nil
		}
	}
	return r, err
}
