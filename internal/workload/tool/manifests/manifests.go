// Package manifests is the tool for packages of plain manifests or a kustomization. It substitutes
// variables, applies the objects with server-side apply, and keeps an inventory of them in a Secret
// on the cluster, so that it can delete objects that a new version of the package drops.
//
// It reads packages in a confined child of the program, runs no plugin and follows no reference out
// of a package. It never decides when to act, and never writes values to a log or into an error.
// Start with Tool; docs/reference describes what users see.
package manifests

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
	"github.com/drover-dev/drover/internal/workload/tool/objects"
)

// Fetcher returns archives. artifact.Store implements it.
type Fetcher interface {
	Fetch(ctx context.Context, ref artifact.Ref, resolved artifact.Resolved) ([]byte, error)
}

// Tool installs manifests on clusters. It keeps no state of an installation between calls.
//
//	         ┌ Secret: pending ┐
//	build ──▶│ objects, and    │──▶ apply in order ──▶ delete what was ──▶ deployed
//	         │ those before    │           │
//	         └─────────────────┘           ├── refused ──▶ failed
//	                  ▲                    │
//	                  └── the next call ◀──┴── killed, or no answer: stays pending
type Tool struct {
	packages *packages
	health   *objects.Checker
}

var (
	_ tool.Tool     = (*Tool)(nil)
	_ tool.Reverter = (*Tool)(nil)
)

// New returns a tool that fetches packages from f.
func New(f Fetcher) *Tool { return &Tool{packages: newPackages(f), health: objects.NewChecker()} }

// operation is one call for one installation.
type operation struct {
	*Tool
	cluster *workload.Cluster
	want    tool.Want
	records records
}

func (t *Tool) begin(cluster *workload.Cluster, want tool.Want) *operation {
	return &operation{Tool: t, cluster: cluster, want: want, records: records{cluster: cluster, id: want.ID}}
}

func (o *operation) writer() *writer {
	return &writer{objects.Writer{Cluster: o.cluster, Manager: fieldManager, Want: o.want}}
}

func (o *operation) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := addonsv1.DefaultTimeout
	if t := o.want.Options.Timeout; t != nil && t.Duration > 0 {
		limit = t.Duration
	}
	return context.WithTimeout(ctx, limit)
}

// Observe answers from the watch of all records of the cluster.
func (t *Tool) Observe(cluster *workload.Cluster, id tool.ID) (tool.State, error) {
	seen, synced := records{cluster: cluster, id: id}.watched()
	if !synced {
		return tool.State{}, tool.ErrNotSynced
	}
	return seen, nil
}

// Apply installs or upgrades, see next.
func (t *Tool) Apply(ctx context.Context, cluster *workload.Cluster, want tool.Want) (tool.State, error) {
	if err := checkName(want.ID.Name); err != nil {
		return tool.State{}, err
	}
	o := t.begin(cluster, want)
	return withRecord(ctx, o.records, o.apply)
}

// Remove deletes the objects, and then their record.
func (t *Tool) Remove(ctx context.Context, cluster *workload.Cluster, want tool.Want) error {
	o := t.begin(cluster, want)
	rec, err := o.records.get(ctx) // the watch may be behind
	if err != nil || rec == nil {
		return err
	}
	return o.remove(ctx, rec)
}

// Diff dry-runs the apply of all objects.
func (t *Tool) Diff(ctx context.Context, cluster *workload.Cluster, want tool.Want) ([]tool.Change, error) {
	o := t.begin(cluster, want)
	return withRecord(ctx, o.records, o.diff)
}

// Health reads the objects of the installation and starts watching their kinds.
func (t *Tool) Health(ctx context.Context, cluster *workload.Cluster, want tool.Want) (tool.Health, error) {
	o := t.begin(cluster, want)
	return withRecord(ctx, o.records, o.checkHealth)
}

// withRecord calls do with the record of an installation, or nil if there is none. It reads the
// record only if the watch knows one, or if do finds out that the watch is behind.
func withRecord[T any](ctx context.Context, r records, do func(context.Context, *record) (T, error)) (T, error) {
	if seen, synced := r.watched(); synced && !seen.Found {
		out, err := do(ctx, nil)
		if !errors.Is(err, errStale) {
			return out, err
		}
	}
	rec, err := r.get(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return do(ctx, rec)
}

// maxNameLength is Helm's limit, which leaves room for the prefix of a record's name.
const maxNameLength = 53

func checkName(name string) error {
	problems := validation.IsDNS1123Subdomain(name)
	if len(name) > maxNameLength {
		problems = append(problems, fmt.Sprintf("must be no longer than %d characters", maxNameLength))
	}
	if len(problems) > 0 {
		return &tool.TerminalError{Err: fmt.Errorf("release name %q: %s", name, problems[0])}
	}
	return nil
}
