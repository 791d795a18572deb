package helm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

const rollbackPrefix = "Rollback to "

// revert creates a new revision from an earlier one, by default from the last complete one. It
// resumes an interrupted rollback.
func (o *operation) revert(ctx context.Context, h history, revision int) (tool.State, error) {
	s, err := o.observe(ctx, h)
	if err != nil {
		return tool.State{}, err
	}
	if s.newest == nil {
		return tool.State{}, &tool.TerminalError{Err: errors.New("no revision to roll back from")}
	}
	target, err := o.target(s, revision)
	if err != nil {
		return tool.State{}, err
	}
	if s.newest.status() == tool.Deployed && s.newest.Info.Description == rollbackTo(target) && revision != 0 {
		return s.newest.state(), nil
	}
	earlier, err := o.records.get(ctx, target)
	if errors.Is(err, errBroken) || errors.Is(err, errStale) {
		return tool.State{}, &tool.TerminalError{Err: err}
	}
	if err != nil {
		return tool.State{}, err
	}
	c, err := o.prepareRollback(s, earlier)
	if err != nil {
		return tool.State{}, err
	}
	return o.execute(ctx, s, c)
}

// rollbackTo is Helm's description of a rollback.
func rollbackTo(revision int) string { return rollbackPrefix + strconv.Itoa(revision) }

// target returns the revision to roll back to.
func (o *operation) target(s *situation, revision int) (int, error) {
	if revision != 0 {
		return revision, nil
	}
	if s.newest.Info.Status == releasecommon.StatusPendingRollback {
		if n, err := strconv.Atoi(strings.TrimPrefix(s.newest.Info.Description, rollbackPrefix)); err == nil {
			return n, nil
		}
	}
	complete, ok := s.history.lastComplete()
	if !ok {
		return 0, &tool.TerminalError{Err: fmt.Errorf("release %q has no earlier revision to roll back to", o.want.ID.Name)}
	}
	return complete.revision, nil
}

// prepareRollback prepares a revision like an earlier one.
func (o *operation) prepareRollback(s *situation, earlier *record) (*change, error) {
	description := rollbackTo(earlier.Version)
	c := &change{before: releasev1.HookPreRollback, after: releasev1.HookPostRollback, done: description}
	c.record = &record{chart: earlier.chart, Release: &releasev1.Release{
		Name: earlier.Name, Namespace: earlier.Namespace, Version: s.newest.Version + 1, Chart: earlier.Chart, Config: earlier.Config,
		Manifest: earlier.Manifest, Hooks: earlier.Hooks, Labels: earlier.Labels, ApplyMethod: string(releasev1.ApplyMethodServerSideApply),
		Info: &releasev1.Info{
			FirstDeployed: s.newest.Info.FirstDeployed, LastDeployed: time.Now(), Notes: earlier.Info.Notes,
			Status: releasecommon.StatusPendingRollback, Description: description,
		},
	}}
	if s.newest.Info.Status == releasecommon.StatusPendingRollback && s.newest.Info.Description == description {
		c.resume, c.Version, c.version = true, s.newest.Version, s.newest.version
	}
	var err error
	c.objects, err = o.objects(c.Manifest)
	return c, err
}

// History reads all revisions in full, so it is meant for people.
func (e *Engine) History(ctx context.Context, cluster *workload.Cluster, id tool.ID) ([]tool.Revision, error) {
	r := records{cluster: cluster, id: id}
	h, err := r.listed(ctx)
	if err != nil {
		return nil, err
	}
	o := e.begin(cluster, tool.Want{ID: id})
	out := make([]tool.Revision, 0, len(h))
	for _, entry := range h {
		rec, err := o.read(ctx, entry)
		if err != nil {
			return nil, err
		}
		out = append(out, describe(entry, rec))
	}
	return out, nil
}

func describe(e entry, rec *record) tool.Revision {
	if rec == nil {
		return tool.Revision{Number: e.revision, Status: e.status, Description: errBroken.Error()}
	}
	out := tool.Revision{Number: rec.Version, Status: rec.status(), Description: rec.Info.Description}
	if rec.Chart != nil && rec.Chart.Metadata != nil {
		out.Package = rec.Chart.Metadata.Name + "-" + rec.Chart.Metadata.Version
	}
	if !rec.Info.LastDeployed.IsZero() {
		out.Updated = rec.Info.LastDeployed.UTC().Format(time.RFC3339)
	}
	return out
}
