package inspect

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/history"
)

// Revision is a current or past spec of an add-on.
type Revision struct {
	Number  int64     `json:"revision"`
	Digest  string    `json:"digest"`
	Created time.Time `json:"created"`
	Chart   string    `json:"chart"`
	Version string    `json:"version,omitempty"`
	Current bool      `json:"current,omitempty"`
	// Good marks the last revision that was rolled out completely, which a failed rollout goes back
	// to.
	Good bool `json:"good,omitempty"`
}

// AddOnRevisions returns the revisions of an add-on that are kept, newest first.
func (p *Plane) AddOnRevisions(ctx context.Context, hcp *addonsv1.HelmChartProxy) ([]Revision, error) {
	all, err := history.List(ctx, p.Client, hcp)
	if err != nil {
		return nil, err
	}
	current, err := history.Digest(&hcp.Spec)
	if err != nil {
		return nil, err
	}
	out := []Revision{}
	for _, r := range all {
		out = append(out, Revision{
			Number: r.Number, Digest: r.Digest, Created: r.Created, Chart: r.Spec.ChartName, Version: version(&r.Spec), Current: r.Digest == current,
			Good: hcp.Status.Rollout != nil && r.Digest == hcp.Status.Rollout.LastGood,
		})
	}
	return out, nil
}

// version describes how a spec selects its version.
func version(s *addonsv1.HelmChartProxySpec) string {
	switch {
	case len(s.Versions) > 0:
		return "by Kubernetes version"
	case s.VersionTemplate != "":
		return s.VersionTemplate
	default:
		return s.Version
	}
}

// AddOnAt returns an add-on as RestoreAddOn would change it, and changes nothing.
func (p *Plane) AddOnAt(ctx context.Context, hcp *addonsv1.HelmChartProxy, number int64) (*addonsv1.HelmChartProxy, error) {
	restored, _, err := history.At(ctx, p.Client, hcp, number)
	return restored, err
}

// RestoreAddOn gives an add-on the spec of an earlier revision, or of the previous one if number is
// zero. It returns the number of that revision.
func (p *Plane) RestoreAddOn(ctx context.Context, hcp *addonsv1.HelmChartProxy, number int64) (int64, error) {
	r, err := history.Restore(ctx, p.Client, hcp, number)
	if err != nil {
		return 0, fmt.Errorf("%w\nTry: drover addon history %s", err, hcp.Name)
	}
	return r.Number, nil
}

// ResumeRollout resumes a paused rollout.
func (p *Plane) ResumeRollout(ctx context.Context, hcp *addonsv1.HelmChartProxy, now time.Time) error {
	r := hcp.Status.Rollout
	if r == nil || r.Phase != addonsv1.RolloutPaused {
		return fmt.Errorf("rollout of add-on %q is not paused\nTry: drover addon status %s", hcp.Name, hcp.Name)
	}
	before := hcp.DeepCopy()
	if hcp.Annotations == nil {
		hcp.Annotations = map[string]string{}
	}
	hcp.Annotations[addonsv1.ResumeRolloutAnnotation] = strconv.FormatInt(now.UnixNano(), 36)
	if err := p.Client.Patch(ctx, hcp, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("resuming the rollout of add-on %q: %w", hcp.Name, err)
	}
	return nil
}
