package release

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func describe(c *metav1.Condition) string {
	if c == nil {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
}

func TestReleaseCondition(t *testing.T) {
	unavailable := &problem{reason: addonsv1.NotAvailableReason, message: "Not connected"}
	dependency := &problem{reason: addonsv1.WaitingForDependenciesReason, message: "Waiting for base"}
	for name, tc := range map[string]struct {
		change func(*facts)
		choice choice
		want   string // empty keeps the condition
	}{
		"up to date":                     {func(*facts) {}, choice{}, "True Ready"},
		"waiting for a dependency":       {func(*facts) {}, choice{wait: dependency}, "False WaitingForDependencies: Waiting for base"},
		"unavailable, was ready":         {func(f *facts) { f.clusterProblem = unavailable }, choice{wait: unavailable}, ""},
		"unavailable, never applied":     {func(f *facts) { f.clusterProblem, f.status.Applied = unavailable, nil }, choice{wait: unavailable}, "False PreparingToHelmInstall: Waiting for the cluster to become available"},
		"installed once, values changed": {func(f *facts) { f.spec.ReconcileStrategy, f.installed, f.fingerprint = addonsv1.InstallOnce, true, "g" }, choice{}, "True Ready"},
		"installing":                     {func(f *facts) { f.state = tool.State{} }, choice{}, "False PreparingToHelmInstall: Installing the release"},
		"upgrading":                      {func(f *facts) { f.fingerprint = "g" }, choice{}, "False HelmReleasePending: Upgrading the release"},
		"failed": {func(f *facts) {
			f.fingerprint = "g"
			f.status.Attempt = &addonsv1.FailedAttempt{Fingerprint: "g", Message: "no chart"}
		}, choice{}, "False HelmInstallOrUpgradeFailed: No chart"},
		"readiness unknown": {func(f *facts) { f.spec.Options.Wait = true }, choice{}, "False HelmReleasePending: Checking readiness of the objects"},
		"not ready yet":     {func(f *facts) { f.spec.Options.Wait, f.known.health = true, &tool.Health{Message: "pod: starting"} }, choice{}, "False HelmReleasePending: Pod: starting"},
		"never becoming ready": {func(f *facts) {
			f.spec.Options.Wait, f.known.health = true, &tool.Health{Failed: true, Message: "job: failed"}
		}, choice{}, "False HelmInstallOrUpgradeFailed: Job: failed"},
		"not ready in time": {func(f *facts) {
			f.spec.Options.Wait, f.known.health, f.appliedFor = true, &tool.Health{Message: "pod: starting"}, time.Hour
		}, choice{}, "False HelmInstallOrUpgradeFailed: Pod: starting"},
		"ready":        {func(f *facts) { f.spec.Options.Wait, f.known.health = true, &tool.Health{Ready: true} }, choice{}, "True Ready"},
		"uninstalling": {func(f *facts) { f.deleting = noon }, choice{}, "False HelmReleaseDeleted: Uninstalling the release"},
		"uninstalling failed": {func(f *facts) {
			f.deleting = noon
			f.status.Attempt = &addonsv1.FailedAttempt{Fingerprint: "remove", Message: "hook failed"}
		}, choice{}, "False HelmReleaseDeletionFailed: Hook failed"},
	} {
		f := settled()
		tc.change(&f)
		if got := describe(releaseCondition(f, tc.choice)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestClusterCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*facts)
		want   string
	}{
		"available": {func(*facts) {}, "True Available"},
		"unavailable": {func(f *facts) {
			f.clusterProblem = &problem{reason: addonsv1.NotAvailableReason, message: "Not connected"}
		}, "False NotAvailable: Not connected"},
		"no credentials": {func(f *facts) {
			f.packageProblem = &problem{reason: addonsv1.GetCredentialsFailedReason, message: "No Secret"}
		}, "False GetCredentialsFailed: No Secret"},
		"invalid values": {func(f *facts) {
			f.packageProblem = &problem{reason: addonsv1.ValueParsingFailedReason, message: "No YAML"}
		}, "True Available"},
		"no certificates": {func(f *facts) {
			f.packageProblem = &problem{reason: addonsv1.GetCACertificateFailedReason, message: "No CA"}
		}, "False GetCACertificateFailed: No CA"},
	} {
		f := settled()
		tc.change(&f)
		c := clusterCondition(f)
		if got := describe(&c); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestOptionalConditions(t *testing.T) {
	drift := []tool.Change{{Object: tool.Object{Name: "web"}}}
	drift[0].Object.Kind = "Deployment"
	for name, tc := range map[string]struct {
		change          func(*facts)
		exclusive, sync string
	}{
		"neither":        {func(*facts) {}, "", ""},
		"claimed later":  {func(f *facts) { f.claimant = "ns/new" }, `False HelmReleaseClaimed: HelmReleaseProxy "ns/new" claims the same release and is ignored`, ""},
		"claimed before": {func(f *facts) { f.claimant, f.owner = "ns/old", "ns/old" }, `False HelmReleaseClaimed: HelmReleaseProxy "ns/old" already manages this release`, ""},
		"not compared":   {func(f *facts) { f.spec.Drift = &addonsv1.Drift{Mode: addonsv1.DriftReport} }, "", ""},
		"in sync": {func(f *facts) {
			f.spec.Drift, f.known.drift = &addonsv1.Drift{Mode: addonsv1.DriftReport}, &[]tool.Change{}
		}, "", "True InSync"},
		"drifted":   {func(f *facts) { f.spec.Drift, f.known.drift = &addonsv1.Drift{Mode: addonsv1.DriftReport}, &drift }, "", "False Drifted: Found drift in Deployment web"},
		"drift off": {func(f *facts) { f.spec.Drift, f.known.drift = &addonsv1.Drift{Mode: addonsv1.DriftOff}, &drift }, "", ""},
	} {
		f := settled()
		tc.change(&f)
		if got := describe(exclusiveCondition(f)); got != tc.exclusive {
			t.Errorf("%s: exclusive %q, want %q", name, got, tc.exclusive)
		}
		if got := describe(syncCondition(f)); got != tc.sync {
			t.Errorf("%s: in sync %q, want %q", name, got, tc.sync)
		}
	}
}

func TestSetStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		change    func(*facts)
		ready     metav1.ConditionStatus
		revision  int
		installed bool
	}{
		"deployed":              {func(*facts) {}, metav1.ConditionTrue, 3, true},
		"owned by another":      {func(f *facts) { f.owner, f.claimant = "ns/old", "ns/old" }, metav1.ConditionTrue, 0, true},
		"being upgraded":        {func(f *facts) { f.fingerprint = "g" }, metav1.ConditionFalse, 3, false},
		"unavailable: as known": {func(f *facts) { f.clusterProblem = &problem{reason: "X", message: "Y"}; f.state = tool.State{} }, metav1.ConditionFalse, 7, false},
	} {
		f := settled()
		tc.change(&f)
		r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Generation: 4}}
		r.Status.Revision = 7
		setStatus(r, f, choice{})
		_, installed := r.Annotations[addonsv1.InstalledAnnotation]
		if r.Status.Revision != tc.revision || installed != tc.installed || r.Status.ObservedGeneration != 4 {
			t.Errorf("%s: revision %d, installed %t, observed %d", name, r.Status.Revision, installed, r.Status.ObservedGeneration)
		}
		if got := conditions.Get(r, clusterv1.ReadyCondition); got == nil || got.Status != tc.ready {
			t.Errorf("%s: Ready is %s, want %s", name, describe(got), tc.ready)
		}
	}
}

func TestEarlierIgnoresNever(t *testing.T) {
	for _, tc := range [][3]time.Duration{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {3, 5, 3}, {5, 3, 3}} {
		if got := earlier(tc[0], tc[1]); got != tc[2] {
			t.Errorf("earlier(%d, %d) = %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}
