package helm

import (
	"context"
	"errors"

	releasecommon "helm.sh/helm/v4/pkg/release/common"

	"github.com/drover-dev/drover/internal/workload/tool"
)

// close records that the revision is deployed. At no time are two revisions recorded as deployed.
func (o *operation) close(ctx context.Context, s *situation, rec *record, description string) error {
	if err := o.supersede(ctx, s, rec.Version); err != nil {
		return err
	}
	rec.SetStatus(releasecommon.StatusDeployed, description)
	if err := o.records.update(ctx, rec); err != nil {
		return err
	}
	o.prune(ctx, s.history, rec.Version)
	return nil
}

// supersede marks earlier revisions that are deployed or being uninstalled as superseded.
func (o *operation) supersede(ctx context.Context, s *situation, revision int) error {
	for i, e := range s.history {
		outgoing := i == 0 && (e.status == tool.Uninstalled || e.status == tool.Uninstalling)
		deployed := e.status == tool.Deployed || s.base != nil && e.revision == s.base.Version && s.base.status() == tool.Deployed
		if e.revision == revision || !deployed && !outgoing {
			continue
		}
		if err := o.markSuperseded(ctx, s, e); err != nil {
			return err
		}
	}
	return nil
}

func (o *operation) markSuperseded(ctx context.Context, s *situation, e entry) error {
	rec := s.base
	if rec == nil || rec.Version != e.revision {
		var err error
		if rec, err = o.read(ctx, e); errors.Is(err, errStale) {
			return nil // deleted
		} else if err != nil {
			return err
		}
	}
	if rec == nil {
		return o.records.relabel(ctx, e, tool.Superseded)
	}
	if rec.Info.Status == releasecommon.StatusSuperseded {
		return nil // the watch is behind
	}
	rec.Info.Status = releasecommon.StatusSuperseded
	return o.records.update(ctx, rec)
}

// defaultHistory is the default number of revisions to keep.
const defaultHistory = 10

// prune deletes the oldest records. A failure is left to the next call.
func (o *operation) prune(ctx context.Context, h history, current int) {
	limit := defaultHistory
	if m := o.want.Options.Upgrade.MaxHistory; m != nil {
		limit = *m
	}
	if limit <= 0 {
		return
	}
	count := 1
	for _, e := range h {
		if e.revision == current {
			continue
		}
		count++
		if count > limit {
			_ = o.records.remove(ctx, e)
		}
	}
}

// decided reports whether a failure is final. Otherwise the revision stays pending, and the next
// call resumes it.
func decided(err error) bool {
	var terminal *tool.TerminalError
	var hook *hookError
	return errors.As(err, &terminal) || errors.As(err, &hook) || errors.Is(err, context.DeadlineExceeded)
}

// fail records the failure of a revision if it is final, and returns cause.
func (o *operation) fail(ctx context.Context, rec *record, cause error) error {
	if ctx.Err() != nil || !decided(cause) {
		return cause
	}
	rec.SetStatus(releasecommon.StatusFailed, cause.Error())
	if err := o.records.update(ctx, rec); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}
