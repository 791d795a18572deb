package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	releasecommon "helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/drover-dev/drover/internal/base/confined"
	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

// change is a revision to be rolled out.
type change struct {
	*record
	objects []*object
	// crds are the chart's CRDs that are not part of the release.
	crds   []*object
	resume bool
	// first reports that no complete revision exists on the cluster.
	first bool
	// before and after are the hook events that run.
	before, after releasev1.HookEvent
	done          string
}

// prepare renders what is wanted and applies CRDs that templates may query. It records nothing.
func (o *operation) prepare(ctx context.Context, s *situation, next step) (*change, error) {
	last := s.last()
	values := effective(o.want.Options.Upgrade, o.want.Values, last)
	chart, err := o.engine.charts.load(ctx, o.want.Package, o.want.Resolved)
	if err != nil {
		return nil, err
	}
	if err := o.reuse(chart, last); err != nil {
		return nil, err
	}
	c := &change{resume: next.resume, first: next.install, before: releasev1.HookPreUpgrade, after: releasev1.HookPostUpgrade, done: "Upgrade complete"}
	if next.install {
		c.before, c.after, c.done = releasev1.HookPreInstall, releasev1.HookPostInstall, "Install complete"
	}
	if c.crds, err = o.crds(ctx, chart, values); err != nil {
		return nil, err
	}
	if next.install {
		if err := o.applyCRDs(ctx, c.crds); err != nil {
			return nil, err
		}
	}
	if c.record, err = o.render(ctx, chart, values, next); err != nil {
		return nil, err
	}
	c.Info.FirstDeployed = firstDeployed(c.Info.LastDeployed, last)
	if last != nil {
		c.Labels = last.Labels
	}
	if next.resume {
		c.version = s.newest.version
	}
	c.objects, err = o.objects(c.Manifest)
	return c, err
}

// reuse replaces the values of a chart by those of the last revision if they are to be reused.
func (o *operation) reuse(chart *chartv2.Chart, last *record) error {
	reused, err := startValues(o.want.Options.Upgrade, chart, last)
	if err != nil {
		return &tool.TerminalError{Err: fmt.Errorf("preparing chart %q: %w", chart.Name(), obj.Redact(err, nil))}
	}
	if reused {
		o.start = chart.Values
	}
	return nil
}

func firstDeployed(now time.Time, last *record) time.Time {
	if last == nil || last.Info.FirstDeployed.IsZero() {
		return now
	}
	return last.Info.FirstDeployed
}

// render returns the record of a revision. It changes the chart as dependencies do.
func (o *operation) render(ctx context.Context, chart *chartv2.Chart, values map[string]any, next step) (*record, error) {
	capabilities, err := capabilitiesOf(o.cluster)
	if err != nil {
		return nil, err
	}
	j := renderJob{
		Kubernetes: capabilities.KubeVersion.Version, APIVersions: capabilities.APIVersions, Lookup: true, SubNotes: o.want.Options.SubNotes,
	}
	j.Release = common.ReleaseOptions{
		Name: o.want.ID.Name, Namespace: o.want.ID.Namespace, Revision: next.revision, IsInstall: next.install, IsUpgrade: !next.install,
	}
	out, err := o.runJob(ctx, chart, values, j)
	if err != nil {
		return nil, err
	}
	if err := out.applyTo(chart); err != nil {
		return nil, &tool.TerminalError{Err: fmt.Errorf("rendering chart %q: %w", chart.Name(), err)}
	}
	hooks, err := out.hooks()
	if err != nil {
		return nil, err
	}
	files := out.Manifests
	if o.want.Options.Install.IncludeCRDs {
		files = slices.Concat(o.crdFiles, files)
	}
	status := releasecommon.StatusPendingUpgrade
	if next.install {
		status = releasecommon.StatusPendingInstall
	}
	return &record{chart: o.fingerprint(), Release: &releasev1.Release{
		Name: o.want.ID.Name, Namespace: o.want.ID.Namespace, Version: next.revision, Chart: chart, Config: values,
		Manifest: manifestText(files...), Hooks: hooks, ApplyMethod: string(releasev1.ApplyMethodServerSideApply),
		Info: &releasev1.Info{LastDeployed: time.Now(), Status: status, Description: "In progress", Notes: out.Notes},
	}}, nil
}

// runJob has a child do a job for the wanted chart.
func (o *operation) runJob(ctx context.Context, chart *chartv2.Chart, values map[string]any, j renderJob) (*product, error) {
	j.Digest, j.HasStart, j.Start, j.Values = o.want.Resolved.Digest, o.start != nil, o.start, values
	look := &lookup{cluster: o.cluster}
	out, err := o.engine.run(ctx, j, peer{
		owner: o.cluster.Key().Namespace, look: look,
		archive: func(ctx context.Context) ([]byte, error) {
			return o.engine.charts.fetcher.Fetch(ctx, o.want.Package, o.want.Resolved)
		},
	})
	switch {
	case look.failed != nil:
		return nil, fmt.Errorf("running lookups for chart %q: %w", chart.Name(), look.failed)
	case confined.InputFault(err):
		return nil, &tool.TerminalError{Err: fmt.Errorf("rendering chart %q: %w", chart.Name(), obj.Redact(err, values))}
	case err != nil:
		return nil, fmt.Errorf("rendering chart %q: %w", chart.Name(), err)
	}
	return out, nil
}

// objects parses a manifest and locates its objects.
func (o *operation) objects(manifest string) ([]*object, error) {
	objects, err := parse(manifest)
	if err != nil {
		return nil, &tool.TerminalError{Err: err}
	}
	return objects, obj.LocateAll(objects, o.cluster.Mapper(), o.want.ID.Namespace)
}

// crds returns the CRDs of the chart and of its enabled dependencies.
func (o *operation) crds(ctx context.Context, chart *chartv2.Chart, values map[string]any) ([]*object, error) {
	if !hasCRDs(chart) {
		return nil, nil
	}
	found, err := o.runJob(ctx, chart, values, renderJob{CRDs: true})
	if err != nil {
		return nil, err
	}
	o.crdFiles = found.CRDs
	out, err := parse(manifestText(found.CRDs...))
	if err != nil {
		return nil, &tool.TerminalError{Err: err}
	}
	return out, obj.LocateAll(out, o.cluster.Mapper(), o.want.ID.Namespace)
}

// hasCRDs reports whether a chart or a dependency, enabled or not, contains CRDs.
func hasCRDs(chart *chartv2.Chart) bool {
	return slices.ContainsFunc(chart.Files, func(f *common.File) bool { return strings.HasPrefix(f.Name, "crds/") }) ||
		slices.ContainsFunc(chart.Dependencies(), hasCRDs)
}

// applyCRDs creates missing CRDs. They belong to no release, so that none deletes them.
func (o *operation) applyCRDs(ctx context.Context, crds []*object) error {
	if len(crds) == 0 || o.want.Options.SkipCRDs || o.want.Options.Install.IncludeCRDs {
		return nil
	}
	w := o.writer()
	for _, crd := range crds {
		err := w.create(ctx, crd)
		if err != nil && !isConflict(err) {
			return obj.Classify(fmt.Errorf("applying %s: %w", crd.Title(), err))
		}
	}
	return obj.AwaitEstablished(ctx, o.cluster, crds)
}

// isConflict reports whether an object already exists.
func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
