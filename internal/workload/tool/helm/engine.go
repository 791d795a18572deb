package helm

import (
	"context"
	"errors"
	"io"
	"log"
	"strings"
	"sync"

	"github.com/drover-dev/drover/internal/base/confined"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// Engine installs charts on clusters. It keeps no state of a release between calls.
//
//	          ┌ Secret: pending ┐                        ┌ old: superseded ┐
//	render ──▶│  of a revision  │──▶ hooks, objects ──▶  │  new: deployed  │
//	          └─────────────────┘          │             └─────────────────┘
//	                   ▲                   ├── refused, or a hook failed ──▶ failed
//	                   └──── the next call ┴── killed, or no answer: stays pending
type Engine struct {
	charts     *charts
	renderers  *confined.Pool
	health     *obj.Checker
	namespaces sync.Map
}

var (
	_ tool.Tool      = (*Engine)(nil)
	_ tool.Reverter  = (*Engine)(nil)
	_ tool.Describer = (*Engine)(nil)
)

// New returns an engine that fetches charts from f.
//
// Helm logs values on the standard logger if their shape differs from those of the chart. New
// filters these lines out; nothing else in Drover uses that logger.
func New(f Fetcher) *Engine {
	redactLog.Do(func() { log.SetOutput(redactingWriter{log.Writer()}) })
	return &Engine{charts: newCharts(f), renderers: newRenderers(renderTime), health: obj.NewChecker()}
}

var redactLog sync.Once

// redactingWriter drops log lines of Helm that contain values.
type redactingWriter struct{ io.Writer }

func (d redactingWriter) Write(line []byte) (int, error) {
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
	// start has the values that replace those of the chart, if they are reused.
	start map[string]any
	// crdFiles are the CRDs of the chart, once they are read.
	crdFiles []file
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

// Apply installs or upgrades, see decide.
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

// Revert creates a new revision from an earlier one.
func (e *Engine) Revert(ctx context.Context, cluster *workload.Cluster, want tool.Want, revision int) (tool.State, error) {
	o := e.begin(cluster, want)
	return withHistory(ctx, o.records, func(ctx context.Context, h history) (tool.State, error) { return o.revert(ctx, h, revision) })
}

// withHistory calls do with the history according to the watch. If the watch is behind or has not
// synced, it lists the history.
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
