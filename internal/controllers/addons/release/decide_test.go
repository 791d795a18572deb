package release

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// settled are the facts of a release with nothing to do.
func settled() facts {
	at := metav1.NewTime(noon.Add(-time.Minute))
	return facts{
		now: noon, initialized: true, fingerprint: "f", appliedFor: time.Minute,
		spec:   &addonsv1.HelmReleaseProxySpec{},
		status: &addonsv1.HelmReleaseProxyStatus{Revision: 3, Applied: &addonsv1.AppliedRelease{Fingerprint: "f", Stamp: "s", At: &at}},
		state:  tool.State{Found: true, Revision: 3, Status: tool.Deployed, Stamp: "s"},
		known:  knowledge{resolveEvery: 10 * time.Minute},
	}
}

func failedBefore(f *facts, ago time.Duration, a addonsv1.FailedAttempt) {
	a.At = metav1.NewTime(noon.Add(-ago))
	f.status.Attempt = &a
}

func TestDecide(t *testing.T) {
	silent := &problem{reason: addonsv1.NotAvailableReason, message: "no", after: 7 * time.Second}
	tests := []struct {
		name   string
		change func(*facts)
		want   choice
	}{
		{"nothing is to be done for a release that is as wanted", func(*facts) {}, choice{do: nothing}},
		{"a version that may move is looked up again", func(f *facts) { f.floating = true }, choice{do: nothing, after: 10 * time.Minute}},
		{"what is not there is installed", func(f *facts) { f.state = tool.State{}; f.status.Applied = nil }, choice{do: apply}},
		{"a removed release is reinstalled", func(f *facts) { f.state = tool.State{} }, choice{do: apply}},
		{"other values are applied", func(f *facts) { f.fingerprint = "g" }, choice{do: apply}},
		{"a foreign upgrade is reverted", func(f *facts) { f.state.Stamp = "t" }, choice{do: apply}},
		{"what a killed Helm left behind is recovered", func(f *facts) { f.state.Status = tool.PendingUpgrade }, choice{do: apply}},

		{"an operation is left to run", func(f *facts) { f.running, f.since = "f", noon.Add(-time.Hour) }, choice{do: nothing}},
		{"a long operation is reported", func(f *facts) { f.running, f.since = "f", noon }, choice{do: nothing, after: patience}},
		{"an obsolete operation is canceled", func(f *facts) { f.running = "old" }, choice{do: abort}},
		{"an installation is ended when it is to be removed", func(f *facts) { f.running = "f"; f.deleting = noon }, choice{do: abort}},

		{"what was installed once is left alone", func(f *facts) {
			f.spec.ReconcileStrategy, f.installed, f.fingerprint = addonsv1.InstallOnce, true, "g"
		}, choice{do: nothing}},
		{"what was not installed yet is, once", func(f *facts) {
			f.spec.ReconcileStrategy, f.state, f.status.Applied = addonsv1.InstallOnce, tool.State{}, nil
		}, choice{do: apply}},
		{"nothing is done on a paused cluster", func(f *facts) { f.paused, f.fingerprint = true, "g" }, choice{do: nothing}},
		{"nothing is removed from a paused cluster", func(f *facts) { f.paused, f.deleting = true, noon }, choice{do: nothing}},
		{
			"a cluster that does not answer is waited for", func(f *facts) { f.clusterProblem, f.fingerprint = silent, "g" },
			choice{do: nothing, wait: silent, after: 7 * time.Second},
		},

		{"a failure is not repeated at once", func(f *facts) {
			f.fingerprint = "g"
			failedBefore(f, 2*time.Second, addonsv1.FailedAttempt{Fingerprint: "g", Failures: 1})
		}, choice{do: nothing, after: 3 * time.Second}},
		{"later failures wait longer", func(f *facts) {
			f.fingerprint = "g"
			failedBefore(f, 2*time.Second, addonsv1.FailedAttempt{Fingerprint: "g", Failures: 3})
		}, choice{do: nothing, after: 18 * time.Second}},
		{"a failure is retried after the backoff", func(f *facts) {
			f.fingerprint = "g"
			failedBefore(f, 10*time.Minute, addonsv1.FailedAttempt{Fingerprint: "g", Failures: 30})
		}, choice{do: apply}},
		{"something new is tried at once after a failure", func(f *facts) {
			f.fingerprint = "h"
			failedBefore(f, 0, addonsv1.FailedAttempt{Fingerprint: "g", Failures: 9})
		}, choice{do: apply}},
		{"what only the user can mend is seldom repeated", func(f *facts) {
			f.fingerprint = "g"
			failedBefore(f, time.Minute, addonsv1.FailedAttempt{Fingerprint: "g", Failures: 1, Terminal: true})
		}, choice{do: nothing, after: 9 * time.Minute}},
		{"what was reverted is not tried again", func(f *facts) {
			f.fingerprint = "g"
			failedBefore(f, time.Hour, addonsv1.FailedAttempt{Fingerprint: "g", Failures: 1, Reverted: true})
		}, choice{do: nothing}},

		{"readiness is checked if wait is set", func(f *facts) { f.spec.Options.Wait = true }, choice{do: check}},
		{"readiness is not checked again without a change", func(f *facts) {
			f.spec.Options.Wait, f.known.health = true, &tool.Health{Ready: true}
		}, choice{do: nothing}},
		{"readiness is checked after a change", func(f *facts) {
			f.spec.Options.Wait, f.known.health, f.known.changed, f.known.checked = true, &tool.Health{}, true, noon.Add(-time.Minute)
		}, choice{do: check}},
		{"readiness checks are rate limited", func(f *facts) {
			f.spec.Options.Wait, f.known.health, f.known.changed, f.known.checked = true, &tool.Health{}, true, noon.Add(-500*time.Millisecond)
		}, choice{do: nothing, after: 1500 * time.Millisecond}},
		{"waiting for readiness ends", func(f *facts) {
			f.spec.Options.Wait, f.known.health = true, &tool.Health{}
		}, choice{do: nothing, after: 9 * time.Minute}},
		{"an atomic upgrade that is not ready in time is reverted", func(f *facts) {
			f.spec.Options.Atomic, f.known.health = true, &tool.Health{}
			f.spec.Options.Timeout = &metav1.Duration{Duration: 30 * time.Second}
		}, choice{do: revert}},
		{"an atomic upgrade that was ready is not reverted when a pod fails later", func(f *facts) {
			f.spec.Options.Atomic, f.known.health = true, &tool.Health{}
			f.spec.Options.Timeout = &metav1.Duration{Duration: 30 * time.Second}
			f.status.Conditions = []metav1.Condition{{Type: addonsv1.ReleaseReady, Status: metav1.ConditionTrue}}
		}, choice{do: nothing}},

		{
			"drift is not looked for unless asked", func(f *facts) { f.spec.Drift = &addonsv1.Drift{Mode: addonsv1.DriftOff}; f.known.specChanged = true },
			choice{do: nothing},
		},
		{"drift is looked for once at first", func(f *facts) { f.spec.Drift = &addonsv1.Drift{Mode: addonsv1.DriftReport} }, choice{do: compare}},
		{"drift is looked for when objects change", func(f *facts) {
			f.spec.Drift, f.known.drift, f.known.specChanged = &addonsv1.Drift{Mode: addonsv1.DriftReport}, &[]tool.Change{}, true
		}, choice{do: compare}},
		{"drift is reported", func(f *facts) {
			f.spec.Drift, f.known.drift = &addonsv1.Drift{Mode: addonsv1.DriftReport}, &[]tool.Change{{}}
		}, choice{do: nothing}},
		{"drift is corrected", func(f *facts) {
			f.spec.Drift, f.known.drift = &addonsv1.Drift{Mode: addonsv1.DriftCorrect}, &[]tool.Change{{}}
		}, choice{do: correct}},

		{"a release is uninstalled", func(f *facts) { f.deleting = noon }, choice{do: remove}},
		{"a release that is gone is let go", func(f *facts) { f.deleting, f.state = noon, tool.State{} }, choice{do: finish}},
		{"a release of a Cluster that is gone is let go", func(f *facts) { f.deleting, f.clusterGone = noon, true }, choice{do: finish}},
		{"what was installed once is not uninstalled", func(f *facts) { f.deleting, f.spec.ReconcileStrategy = noon, addonsv1.InstallOnce }, choice{do: finish}},
		{"what never can have been installed is let go", func(f *facts) {
			f.deleting, f.initialized, f.clusterProblem, f.status = noon, false, silent, &addonsv1.HelmReleaseProxyStatus{}
		}, choice{do: finish}},
		{"a release that was never permitted is not uninstalled", func(f *facts) { f.deleting, f.denied = noon, true; f.status.Applied = nil }, choice{do: finish}},
		{"a release that is no longer permitted is left behind", func(f *facts) { f.deleting, f.denied = noon, true }, choice{do: abandon}},
		{"another's release is not uninstalled", func(f *facts) { f.deleting, f.owner = noon, "ns/other" }, choice{do: finish}},
		{
			"a silent cluster holds up uninstalling", func(f *facts) { f.deleting, f.clusterProblem = noon, silent },
			choice{do: nothing, wait: silent, after: 7 * time.Second},
		},
		{"a silent cluster holds up uninstalling for so long only", func(f *facts) {
			f.deleting, f.deletingFor, f.clusterProblem = noon, time.Hour, silent
			f.spec.Options.Uninstall = &addonsv1.HelmUninstallOptions{GiveUpAfter: &metav1.Duration{Duration: time.Hour}}
		}, choice{do: abandon}},
		{"giving up is not forgotten while waiting", func(f *facts) {
			f.deleting, f.deletingFor, f.clusterProblem = noon, time.Hour, silent
			f.spec.Options.Uninstall = &addonsv1.HelmUninstallOptions{GiveUpAfter: &metav1.Duration{Duration: time.Hour + time.Second}}
		}, choice{do: nothing, wait: silent, after: time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := settled()
			tt.change(&f)
			if got := decide(f); got != tt.want {
				t.Errorf("decide() = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestDecideWaitsForOthers(t *testing.T) {
	f := settled()
	f.waitingFor = []string{"a", "b", "c", "d"}
	c := decide(f)
	if c.do != nothing || c.wait == nil || c.wait.reason != addonsv1.WaitingForDependenciesReason ||
		c.wait.message != "Waiting for a, b, c and 1 more to become ready on the cluster" {
		t.Errorf("decide() = %+v, %+v", c, c.wait)
	}
	f = settled()
	f.owner = "ns/older"
	if c := decide(f); c.do != nothing || c.wait == nil || c.wait.reason != addonsv1.ReleaseClaimedReason {
		t.Errorf("decide() = %+v, %+v", c, c.wait)
	}
}

func TestFloatingVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"": true, "1": true, "1.2": true, "^1.2.3": true, ">= 1.0.0": true, "1.x": true, "latest": true,
		"1.2.3": false, "v1.2.3": false, "1.2.3-rc.1+build": false,
		"sha256:0000000000000000000000000000000000000000000000000000000000000000": false,
	} {
		if got := floating(version); got != want {
			t.Errorf("floating(%q) = %t, want %t", version, got, want)
		}
	}
}

func TestFirstInstallIsNotReportedAsUpgrade(t *testing.T) {
	for state, want := range map[tool.State]string{
		{}: "Installing the release",
		{Found: true, Status: tool.PendingInstall}: "Installing the release",
		{Found: true, Status: tool.Deployed}:       "Upgrading the release",
	} {
		if got := progressCondition(facts{status: &addonsv1.HelmReleaseProxyStatus{}, state: state}); got.Message != want {
			t.Errorf("message for %+v is %q, want %q", state, got.Message, want)
		}
	}
}
