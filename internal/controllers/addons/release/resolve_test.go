package release

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

// unreachable is a repository that never responds, except that a chart is missing.
type unreachable struct{}

func (unreachable) Resolve(_ context.Context, ref artifact.Ref) (artifact.Resolved, error) {
	if ref.Name == "missing" {
		return artifact.Resolved{}, artifact.ErrNotFound
	}
	return artifact.Resolved{}, errors.New("no such host")
}

func (unreachable) Fetch(context.Context, artifact.Ref, artifact.Resolved) ([]byte, error) {
	return nil, errors.New("no such host")
}

func TestChartThatCannotBeDownloadedHasFailed(t *testing.T) {
	asked := make(chan client.ObjectKey, 1)
	now := clocktesting.NewFakeClock(noon)
	r := &resolutions{
		resolver: unreachable{}, clock: now, every: time.Hour, enqueue: func(who client.ObjectKey) { asked <- who }, stop: t.Context(), known: map[string]*resolution{},
	}
	who := client.ObjectKey{Namespace: "ns", Name: "web"}
	ref := artifact.Ref{URL: "https://charts.test", Name: "web", Version: "1.0.0"}
	expect := func(name, reason string, p *problem) {
		t.Helper()
		if p == nil || p.reason != reason {
			t.Errorf("%s: got %+v, want %s", name, p, reason)
		}
	}
	for name, ask := range map[string]func() *problem{
		"resolving": func() *problem { _, p := r.resolve(ref, who); return p },
		"fetching":  func() *problem { return r.fetch(ref, artifact.Resolved{Digest: "sha256:x"}, who) },
	} {
		expect(name, addonsv1.PreparingReason, ask())
		<-asked
		expect(name+" after a failure", addonsv1.PreparingReason, ask())
		now.Step(firstRetry)
		ask()
		<-asked
		expect(name+" after the second failure", addonsv1.InstallOrUpgradeFailedReason, ask())
		now.Step(2 * firstRetry)
		expect(name+" during a retry", addonsv1.InstallOrUpgradeFailedReason, ask())
		<-asked
	}
	missing := artifact.Ref{URL: "https://charts.test", Name: "missing", Version: "1.0.0"}
	_, p := r.resolve(missing, who)
	expect("a missing chart", addonsv1.PreparingReason, p)
	<-asked
	_, p = r.resolve(missing, who)
	expect("a missing chart", addonsv1.InstallOrUpgradeFailedReason, p)
}
