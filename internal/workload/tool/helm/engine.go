package helm

import (
	"context"
	"errors"
	"io"
	"log"
	"strings"
	"sync"

	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// Engine puts charts onto clusters. It keeps nothing of a release in memory once a call has returned.
//
//	          ┌ Secret: pending ┐                        ┌ old: superseded ┐
//	render ──▶│  of a revision  │──▶ hooks, objects ──▶  │  new: deployed  │
//	          └─────────────────┘          │             └─────────────────┘
//	                   ▲                   ├── refused, or a hook failed ──▶ failed
//	                   └──── the next call ┴── killed, or no answer: stays pending
type Engine struct {
	charts     *charts
	health     *obj.Checker
	namespaces sync.Map
}

var (
	_ tool.Tool     = (*Engine)(nil)
	_ tool.Reverter = (*Engine)(nil)
)

// New returns an engine that gets its charts from f.
//
// Where values and those of a chart are of different shapes, Helm says so on the standard logger, with both. Nothing else of Drover uses that
// logger, and values must not get there, so these lines are left out from now on.
func New(f Fetcher) *Engine {
	quiet.Do(func() { log.SetOutput(discreet{log.Writer()}) })
	return &Engine{charts: newCharts(f), health: obj.NewChecker()}
}

var quiet sync.Once

// discreet leaves out what Helm says of values.
type discreet struct{ io.Writer }

func (d discreet) Write(line []byte) (int, error) {
	for _, mark := range []string{"warning: cannot overwrite table", "warning: destination for", "warning: skipped value for"} {
		if strings.Contains(string(line), mark) {
			return len(line), nil
		}
	}
	return d.Writer.Write(line)
}

// operation is one call for one release.
type operation struct {
	engine  *Engine
	cluster *workload.Cluster
	want    tool.Want
	records records
}

func (e *Engine) begin(cluster *workload.Cluster, want tool.Want) *operation {
	return &operation{engine: e, cluster: cluster, want: want, records: records{cluster: cluster, id: want.ID}}
}

func (o *operation) writer() *writer {
	return &writer{Writer: obj.Writer{Cluster: o.cluster, Manager: fieldManager, Want: o.want}}
}

// Observe answers from the watch of all release Secrets of the cluster.
func (e *Engine) Observe(cluster *workload.Cluster, id tool.ID) (tool.State, error) {
	h, synced := records{cluster: cluster, id: id}.watched()
	if !synced {
		return tool.State{}, tool.ErrNotSynced
	}
	if len(h) == 0 {
		return tool.State{}, nil
	}
	return h[0].state(), nil
}

// Apply makes the release as wanted, see decide.
func (e *Engine) Apply(ctx context.Context, cluster *workload.Cluster, want tool.Want) (tool.State, error) {
	o := e.begin(cluster, want)
	return withHistory(ctx, o.records, o.apply)
}

// Remove uninstalls the release.
func (e *Engine) Remove(ctx context.Context, cluster *workload.Cluster, want tool.Want) error {
	o := e.begin(cluster, want)
	_, err := withHistory(ctx, o.records, o.remove)
	return err
}

// Revert makes a new revision out of an earlier one.
func (e *Engine) Revert(ctx context.Context, cluster *workload.Cluster, want tool.Want, revision int) (tool.State, error) {
	o := e.begin(cluster, want)
	return withHistory(ctx, o.records, func(ctx context.Context, h history) (tool.State, error) { return o.revert(ctx, h, revision) })
}

// withHistory calls do with what the watch told of a release. If that turns out to be old, or tells nothing, the cluster is asked.
func withHistory[T any](ctx context.Context, r records, do func(context.Context, history) (T, error)) (T, error) {
	if h, synced := r.watched(); synced {
		out, err := do(ctx, h)
		if !errors.Is(err, errStale) {
			return out, err
		}
	}
	h, err := r.listed(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return do(ctx, h)
}
