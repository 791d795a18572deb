package forge

import (
	"context"
	"net/http"
	"net/url"

	"github.com/drover-dev/drover/internal/git/rest"
)

type gitlab struct {
	client  *rest.Client
	project string
}

type gitlabStatus struct {
	State       string `json:"state,omitempty"`
	Status      string `json:"status,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	TargetURL   string `json:"target_url,omitempty"`
}

// SetStatus implements Forge. GitLab treats a status as a job, which can't change into the state
// that it has: such a status is not sent again.
func (f *gitlab) SetStatus(ctx context.Context, s Status) error {
	s, err := s.check()
	if err != nil {
		return err
	}
	state := string(s.State)
	if s.State == Failure {
		state = "failed"
	}
	current, err := f.current(ctx, s)
	if err != nil || current == state {
		return err
	}
	_, err = f.client.Do(ctx, rest.Request{
		Doing: s.doing(), Method: http.MethodPost, Path: []string{"projects", f.project, "statuses", s.Commit},
		Body: gitlabStatus{State: state, Name: s.Context, Description: s.Description, TargetURL: s.TargetURL},
	}, nil)
	return err
}

// current returns the newest state of a context, or "".
func (f *gitlab) current(ctx context.Context, s Status) (string, error) {
	var list []gitlabStatus
	_, err := f.client.Do(ctx, rest.Request{
		Doing: s.doing(), Method: http.MethodGet, Path: []string{"projects", f.project, "repository", "commits", s.Commit, "statuses"},
		Query: url.Values{"name": {s.Context}},
	}, &list)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Status, nil
}
