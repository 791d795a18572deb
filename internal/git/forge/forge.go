// Package forge reports what became of a commit to the forge that hosts it, where people see it
// beside the commit and in pull requests. It knows GitHub, GitLab and Gitea.
//
// It never retries: a status is reported again with the next change. Start with New.
package forge

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/git/rest"
)

// State is what became of a commit.
type State string

// The states that all forges have.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is a message about a commit.
type Status struct {
	// Commit is a full ID.
	Commit string
	State  State
	// Context tells statuses of one commit apart. A new status replaces that of the same context.
	Context string
	// Description is one line. It is cut at 140 bytes, which is the least that a forge accepts.
	Description string
	// TargetURL leads to details. It may be empty.
	TargetURL string
}

// Forge reports statuses of commits of one repository.
type Forge interface {
	SetStatus(ctx context.Context, s Status) error
}

// Kind is a kind of forge.
type Kind string

// The kinds of forges.
const (
	GitHub Kind = "github"
	GitLab Kind = "gitlab"
	Gitea  Kind = "gitea"
)

// Options configure a Forge.
type Options struct {
	Kind Kind
	// BaseURL is the root of the API: https://api.github.com, https://gitlab.example.com/api/v4 or
	// https://gitea.example.com/api/v1.
	BaseURL string
	// Repository is owner/name. In GitLab, the owner may have several segments.
	Repository string
	Token      string
	// CA has certificates in PEM, which are trusted besides those of the system.
	CA []byte
}

// New returns a forge without connecting to it.
func New(o Options) (Forge, error) {
	owner, name, ok := cutLast(o.Repository)
	if !ok || o.Kind != GitLab && strings.Contains(owner, "/") {
		return nil, fmt.Errorf("configuring %s: repository %.200q is not owner/name", o.Kind, o.Repository)
	}
	header, ok := headers(o.Kind, o.Token)
	if !ok {
		return nil, fmt.Errorf("configuring a forge: %.50q is not a supported kind; use %s, %s or %s", o.Kind, GitHub, GitLab, Gitea)
	}
	client, err := rest.New(rest.Options{BaseURL: o.BaseURL, Header: header, CA: o.CA, Secret: o.Token})
	if err != nil {
		return nil, fmt.Errorf("configuring %s: %w", o.Kind, err)
	}
	if o.Kind == GitLab {
		return &gitlab{client: client, project: o.Repository}, nil
	}
	return &common{client: client, owner: owner, name: name}, nil
}

func cutLast(repository string) (owner, name string, ok bool) {
	at := strings.LastIndex(repository, "/")
	if at <= 0 || at == len(repository)-1 {
		return "", "", false
	}
	return repository[:at], repository[at+1:], true
}

// maxDescription is the limit of GitHub; that of the others is 255.
const maxDescription = 140

var commitID = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// check rejects what forges would, and shortens the description.
func (s Status) check() (Status, error) {
	s.Description = text.TruncateTo(strings.Join(strings.Fields(s.Description), " "), maxDescription)
	switch target, err := url.Parse(s.TargetURL); {
	case !commitID.MatchString(s.Commit):
		return s, fmt.Errorf("setting a status: %.100q is not a full commit ID", s.Commit)
	case s.State != Pending && s.State != Success && s.State != Failure:
		return s, fmt.Errorf("setting a status: %.100q is not a state", s.State)
	case s.Context == "":
		return s, fmt.Errorf("setting a status: context is required")
	case s.TargetURL != "" && (err != nil || target.Scheme != "https" && target.Scheme != "http" || target.Host == ""):
		return s, fmt.Errorf("setting a status: target URL is not an http or https URL")
	}
	return s, nil
}

func (s Status) doing() string {
	return fmt.Sprintf("setting status %q of commit %.12s", s.Context, s.Commit)
}
