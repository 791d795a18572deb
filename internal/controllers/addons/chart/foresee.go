package chart

import (
	"cmp"
	"context"
	"slices"

	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/desired"
)

// Prospect is what would be done on one cluster.
type Prospect struct {
	Cluster string
	Action  Action
	// Before is the release that is there, and After the one that would be; either may be nil.
	Before, After *addonsv1.HelmReleaseProxy
	// Err is why it is not known, or why nothing would be done.
	Err error
}

// Action is what would be done with a release.
type Action string

// Actions of a Prospect.
const (
	Keep      Action = "Keep"
	Install   Action = "Install"
	Upgrade   Action = "Upgrade"
	Reinstall Action = "Reinstall"
	Uninstall Action = "Uninstall"
)

// Foresee says what a controller would do if the HelmChartProxy were as it is given, by the name of the cluster. It takes the same steps
// but for the last, and writes nothing. Clusters that are paused or going are left out, as they are by a controller.
func Foresee(ctx context.Context, client ctrlclient.Client, hcp *addonsv1.HelmChartProxy) ([]Prospect, error) {
	program, problems := desired.Compile(&hcp.Spec)
	if len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	c := &Controller{Client: client, Live: client}
	s := &scope{chart: hcp, before: hcp, program: program}
	for _, step := range []step{c.find, c.choose} {
		if err := step(ctx, s); err != nil {
			return nil, err
		}
	}
	var out []Prospect
	for _, p := range s.problems {
		out = append(out, Prospect{Cluster: p.cluster, Err: p.err})
	}
	for _, t := range s.targets {
		if !t.skip {
			out = append(out, c.foresee(ctx, s, t))
		}
	}
	orphans, err := c.foreseeOrphans(ctx, s)
	out = append(out, orphans...)
	slices.SortFunc(out, func(a, b Prospect) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out, err
}

func (c *Controller) foresee(ctx context.Context, s *scope, t *target) Prospect {
	p := Prospect{Cluster: t.cluster.Name, Action: Keep, Before: t.release, After: t.release}
	found, err := desired.Look(ctx, c.Client, t.cluster, s.program.Uses())
	if err != nil {
		p.Err = err
		return p
	}
	want, err := s.program.For(s.key(), found)
	if err != nil {
		p.Err = err
		return p
	}
	m := decide(s.chart, t.release, want)
	switch m.verb {
	case create:
		p.Action, p.After = Install, m.object
	case update:
		p.Action, p.After = Upgrade, m.object
	case reinstall, await:
		p.Action, p.After = Reinstall, decide(s.chart, nil, want).object
	case refuse:
		p.Err = m.why
	}
	return p
}

// foreseeOrphans finds releases that would go.
func (c *Controller) foreseeOrphans(ctx context.Context, s *scope) ([]Prospect, error) {
	chosen := map[string]bool{}
	for _, cluster := range s.clusters {
		chosen[cluster.Name] = true
	}
	var out []Prospect
	for name, releases := range s.releases {
		for _, r := range releases {
			if chosen[name] {
				continue
			}
			stays, err := c.stays(ctx, s, r)
			if err != nil {
				return nil, err
			}
			if !stays {
				out = append(out, Prospect{Cluster: name, Action: Uninstall, Before: r})
			}
		}
	}
	return out, nil
}
