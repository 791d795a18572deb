package forge

import (
	"context"
	"net/http"

	"github.com/drover-dev/drover/internal/git/github"
	"github.com/drover-dev/drover/internal/git/rest"
)

// headers returns what a kind of forge expects in each request.
func headers(kind Kind, token string) (http.Header, bool) {
	switch kind {
	case GitHub:
		return github.Header(token), true
	case GitLab:
		return http.Header{"Private-Token": {token}, "User-Agent": {"drover"}}, true
	case Gitea:
		return http.Header{"Authorization": {"token " + token}, "User-Agent": {"drover"}}, true
	default:
		return nil, false
	}
}

// common is GitHub or Gitea, which have the same API for statuses.
type common struct {
	client      *rest.Client
	owner, name string
}

type commonStatus struct {
	State       State  `json:"state"`
	Context     string `json:"context"`
	Description string `json:"description,omitempty"`
	TargetURL   string `json:"target_url,omitempty"`
}

// SetStatus implements Forge.
func (f *common) SetStatus(ctx context.Context, s Status) error {
	s, err := s.check()
	if err != nil {
		return err
	}
	_, err = f.client.Do(ctx, rest.Request{
		Doing: s.doing(), Method: http.MethodPost, Path: []string{"repos", f.owner, f.name, "statuses", s.Commit},
		Body: commonStatus{State: s.State, Context: s.Context, Description: s.Description, TargetURL: s.TargetURL},
	}, nil)
	return err
}
