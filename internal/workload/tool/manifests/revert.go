package manifests

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

// Revert creates a new revision from the previous one, which is the only one that is kept.
func (t *Tool) Revert(ctx context.Context, cluster *workload.Cluster, want tool.Want, revision int) (tool.State, error) {
	o := t.begin(cluster, want)
	rec, err := o.records.get(ctx)
	if err != nil {
		return tool.State{}, err
	}
	if rec == nil || rec.broken {
		return tool.State{}, &tool.TerminalError{Err: errors.New("no revision to roll back from")}
	}
	if rec.Status == tool.PendingRollback { // resume
		next := *rec
		return o.execute(ctx, rec, &next)
	}
	if revision != 0 && rec.Status == tool.Deployed && rec.Again == revision {
		return rec.state(), nil
	}
	if rec.Last == nil || revision != 0 && revision != rec.Last.Number {
		return tool.State{}, &tool.TerminalError{Err: fmt.Errorf("revision %d is not kept; only the previous revision of manifests is", revision)}
	}
	next := &record{revision: *rec.Last, Status: tool.PendingRollback, Again: rec.Last.Number}
	next.succeed(rec)
	return o.execute(ctx, rec, next)
}

// History returns the current revision and the previous one.
func (t *Tool) History(ctx context.Context, cluster *workload.Cluster, id tool.ID) ([]tool.Revision, error) {
	rec, err := records{cluster: cluster, id: id}.get(ctx)
	if rec == nil || err != nil {
		return nil, err
	}
	out := []tool.Revision{rec.describe(rec.Status, rec.Message)}
	if rec.Last != nil {
		out = append(out, rec.Last.describe(tool.Superseded, ""))
	}
	return out, nil
}

func (r *revision) describe(status, message string) tool.Revision {
	return tool.Revision{
		Number: r.Number, Status: status, Package: r.Package + "-" + r.Version, Updated: r.Updated.Format(time.RFC3339), Description: message,
	}
}
