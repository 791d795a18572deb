package install

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/model/target"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// installed returns the facts of a Package that is installed, with changes.
func installed(changes ...func(*facts)) *facts {
	source := pack("hello", "0.1.0")
	f := &facts{
		pack: &packagesv1.Package{
			ObjectMeta: metav1.ObjectMeta{Namespace: "eksa-packages-dev", Name: "my", Generation: 4},
			Spec:       packagesv1.PackageSpec{PackageName: "hello"},
		},
		target:            &packagesv1.PackageTarget{Cluster: "dev", ClusterNamespace: "fleet", Release: "my", Namespace: "x"},
		controller:        &packagesv1.PackageBundleController{Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: "v1-36-1"}},
		bundle:            &packagesv1.PackageBundle{ObjectMeta: metav1.ObjectMeta{Name: "v1-36-1"}},
		found:             bundle.Found{Package: &source, Version: &source.Source.Versions[0], Latest: true},
		dependenciesKnown: true,
		release: &addonsv1.HelmReleaseProxy{
			ObjectMeta: metav1.ObjectMeta{Name: "my", Generation: 2}, Status: addonsv1.HelmReleaseProxyStatus{ObservedGeneration: 2},
		},
	}
	conditions.Set(f.release, metav1.Condition{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready"})
	for _, change := range changes {
		change(f)
	}
	return f
}

// Changes of facts.
func deleted(f *facts)    { f.pack.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
func noRelease(f *facts)  { f.release, f.changed = nil, true }
func unobserved(f *facts) { f.release.Generation++ }
func foreign(f *facts)    { f.release, f.changed, f.foreign = nil, true, true }
func noTarget(f *facts) {
	*f = facts{pack: f.pack, targetErr: &target.UnknownError{Message: "no such cluster"}}
}

func ambiguous(f *facts) {
	*f = facts{pack: f.pack, targetErr: &target.AmbiguousError{Message: "several"}}
}
func outside(f *facts)  { *f = facts{pack: f.pack, targetErr: target.ErrNamespace} }
func noActive(f *facts) { f.controller.Spec.ActiveBundle, f.bundle, f.found = "", nil, bundle.Found{} }

func noBundle(f *facts) {
	f.bundleErr, f.bundle, f.found = errors.New("not found"), nil, bundle.Found{}
}

func noPackage(f *facts) {
	f.findErr, f.found = &bundle.NotInBundleError{}, bundle.Found{}
}

func noVersion(f *facts) {
	f.findErr, f.found, f.pack.Spec.PackageVersion = &bundle.NoVersionError{}, bundle.Found{}, "9"
}
func untrusted(f *facts) { f.verifyErr = bundle.ErrUnsigned }
func badConfig(f *facts) { f.configErr = errors.New("title is required") }
func cycle(f *facts) {
	f.graphErr, f.dependenciesKnown = &bundle.CycleError{Packages: []string{"a", "b", "a"}}, false
}
func badGraph(f *facts) { f.graphErr, f.dependenciesKnown = &bundle.NotInBundleError{}, false }
func badDependency(f *facts) {
	f.missing, f.dependencyErr = []string{"lib"}, &dependencyError{"lib", errors.New("it exists")}
}
func missing(f *facts) { f.missing = []string{"base", "lib"} }
func changed(f *facts) { f.changed = true }
func noChart(f *facts) { f.namespaceUnknown, f.release = true, nil }
func badChart(f *facts) {
	f.namespaceUnknown, f.namespaceErr, f.release = true, errors.New("not found"), nil
}

func releaseDeleted(f *facts) {
	f.changed, f.release.DeletionTimestamp = true, &metav1.Time{Time: time.Unix(1, 0)}
}

// releaseCondition returns a change that sets a condition of the release, which is then not ready.
func releaseCondition(kind, reason, message string) func(*facts) {
	return func(f *facts) {
		for _, name := range []string{kind, clusterv1.ReadyCondition} {
			conditions.Set(f.release, metav1.Condition{Type: name, Status: metav1.ConditionFalse, Reason: reason, Message: message})
		}
	}
}

var (
	unreachable = releaseCondition(addonsv1.ClusterAvailable, addonsv1.NotAvailableReason, "no route")
	pending     = releaseCondition(addonsv1.ReleaseReady, addonsv1.PendingReason, "1 of 2 pods")
	failed      = releaseCondition(addonsv1.ReleaseReady, addonsv1.InstallOrUpgradeFailedReason, "no pod is ready")
)

// printed is a condition on one line, "kept" if there is none.
func printed(c *metav1.Condition) string {
	if c == nil {
		return "kept"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
}

func TestConditions(t *testing.T) {
	for _, tc := range []struct {
		name      string
		facts     *facts
		condition func(*facts) *metav1.Condition
		want      string
	}{
		{"target known", installed(), targetCondition, `True Known: Release "my" on Cluster "dev" in namespace "fleet"`},
		{"target unknown", installed(noTarget), targetCondition, "False Unknown: Target not found: no such cluster"},
		{
			"target ambiguous", installed(ambiguous), targetCondition,
			`False Ambiguous: Target not found: several`,
		},
		{"wrong namespace", installed(outside), targetCondition, "False NamespaceInvalid: Target not found: " + target.ErrNamespace.Error()},
		{"target not determined", &facts{pack: installed().pack}, targetCondition, "kept"},

		{"source found", installed(), sourceCondition, "True Found: Version 0.1.0 of bundle v1-36-1"},
		{"no active bundle", installed(noActive), sourceCondition, "False NoActiveBundle: no activeBundle set in PackageBundleController"},
		{"bundle missing", installed(noBundle), sourceCondition, "False NoActiveBundle: not found"},
		{"package missing", installed(noPackage), sourceCondition, "False NotInBundle: Package hello is not in the active bundle (v1-36-1)."},
		{"version missing", installed(noVersion), sourceCondition, "False NotInBundle: Package hello@9 is not in the active bundle (v1-36-1)."},
		{"bundle untrusted", installed(untrusted), sourceCondition, `False BundleRefused: PackageBundle "v1-36-1" cannot be used: Missing signature`},
		{"config invalid", installed(badConfig), sourceCondition, "False ConfigInvalid: title is required"},
		{"source not determined", installed(noTarget), sourceCondition, "kept"},
		{
			"ambiguous target of a controller without a bundle", installed(noActive, func(f *facts) { f.target = nil }), sourceCondition, "kept",
		},

		{"dependencies installed", installed(), dependenciesCondition, "True Installed"},
		{"dependencies missing", installed(missing), dependenciesCondition, "False Pending: Waiting for dependencies: base, lib"},
		{
			"dependency cycle", installed(cycle), dependenciesCondition,
			"False Invalid: invalid package bundle. (hello@0.1.0 bundle: v1-36-1): dependency cycle: a -> b -> a",
		},
		{"dependency not in the bundle", installed(badGraph), dependenciesCondition, "False Invalid: invalid package bundle. (hello@0.1.0 bundle: v1-36-1)"},
		{"dependency rejected", installed(badDependency), dependenciesCondition, `False Invalid: Creating Package "lib" failed: it exists`},
		{"dependencies not determined", installed(noTarget), dependenciesCondition, "kept"},

		{"installed", installed(), installedCondition, "True Installed"},
		{"no release", installed(noRelease), installedCondition, "kept"},
		{"release of another owner", installed(foreign), installedCondition, `False Failed: HelmReleaseProxy "my" exists and belongs to another owner`},
		{"chart is being downloaded", installed(noChart), installedCondition, "False Installing: Downloading the chart of version 0.1.0"},
		{"chart missing", installed(badChart), installedCondition, "False Failed: not found"},
		{"release is being deleted", installed(releaseDeleted), installedCondition, `False Installing: Waiting for the deletion of HelmReleaseProxy "my"`},
		{"release changed", installed(changed), installedCondition, "False Installing"},
		{"release not observed", installed(failed, unobserved), installedCondition, "False Installing"},
		{"release not ready", installed(pending), installedCondition, "False Installing: 1 of 2 pods"},
		{"release failed", installed(failed), installedCondition, "False Failed: no pod is ready"},
		{"cluster unreachable", installed(failed, unreachable), installedCondition, "False Installing: no route"},

		{"uninstalling", installed(deleted), installedCondition, "False Uninstalling: Uninstalling the release"},
		{"uninstalled", installed(deleted, noRelease), installedCondition, "False Uninstalling: Uninstalling the release"},
		{"uninstall failed", installed(deleted, failed), installedCondition, "False Uninstalling: no pod is ready"},
		{"uninstalling from an unreachable cluster", installed(deleted, unreachable), installedCondition, "Unknown Uninstalling: no route"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(tc.condition(tc.facts)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestStateAndDetail(t *testing.T) {
	before := func(state packagesv1.StateEnum, version string) *packagesv1.PackageStatus {
		f := installed()
		return &packagesv1.PackageStatus{State: state, CurrentVersion: version, Source: sourceOf(f.found), Spec: f.pack.Spec}
	}
	none, was := &packagesv1.PackageStatus{}, before("installed", "0.1.0")
	for _, tc := range []struct {
		name   string
		facts  *facts
		was    *packagesv1.PackageStatus
		state  packagesv1.StateEnum
		detail string
	}{
		{"installed", installed(), none, "installed", ""},
		{"deleted", installed(deleted), was, "uninstalling", ""},
		{"deleted on an unreachable cluster", installed(deleted, unreachable), was, "uninstalling", "no route"},
		{"wrong namespace", installed(outside), none, "unknown", target.ErrNamespace.Error()},
		{"no target", installed(noTarget), none, "initializing", "getting PackageBundleController: no such cluster"},
		{"no target any more", installed(noTarget), was, "installed", "getting PackageBundleController: no such cluster"},
		{"a target after a wrong namespace", installed(noBundle), before("unknown", ""), "initializing", "not found"},
		{"no bundle any more", installed(noBundle), was, "installed", "not found"},
		{"invalid config of an update", installed(badConfig), before("updating", "0.1.0"), "updating", "title is required"},
		{"new with missing dependencies", installed(noRelease, missing), none, "installing dependencies", "Waiting for dependencies: base, lib"},
		{"changed with missing dependencies", installed(changed, missing), was, "installing dependencies", "Waiting for dependencies: base, lib"},
		{"unchanged with missing dependencies", installed(missing), was, "installed", ""},
		{
			"new with a rejected dependency", installed(noRelease, badDependency), none,
			"installing dependencies", `Creating Package "lib" failed: it exists`,
		},
		{"installed with a rejected dependency", installed(badDependency), was, "installed", `Creating Package "lib" failed: it exists`},
		{"new", installed(noRelease), none, "installing", ""},
		{"new without a chart", installed(badChart), none, "installing", "not found"},
		{"updated", installed(changed), was, "updating", ""},
		{"update not observed", installed(unobserved), was, "updating", ""},
		{"not ready after it was", installed(pending), was, "installed", "1 of 2 pods"},
		{"not ready yet", installed(pending), before("installing", ""), "installing", "1 of 2 pods"},
		{"failed attempt", installed(failed, func(f *facts) { f.release.Status.Attempt = &addonsv1.FailedAttempt{} }), was, "updating", "no pod is ready"},
		{"another config, not ready yet", installed(pending, func(f *facts) { f.pack.Spec.Config = "a: b" }), was, "updating", "1 of 2 pods"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := state(tc.facts, tc.was); got != tc.state {
				t.Errorf("state is %q, want %q", got, tc.state)
			}
			if got := detail(tc.facts); got != tc.detail {
				t.Errorf("detail is %q, want %q", got, tc.detail)
			}
		})
	}
}

func TestChooseWrite(t *testing.T) {
	for _, tc := range []struct {
		name  string
		facts *facts
		want  write
	}{
		{"up to date", installed(), writeNothing},
		{"new", installed(noRelease), writeNew},
		{"changed", installed(changed), writeChange},
		{"new with missing dependencies", installed(noRelease, missing), writeNothing},
		{"changed with missing dependencies", installed(changed, missing), writeNothing},
		{"release of another owner", installed(foreign), writeNothing},
		{"changed while it is being deleted", installed(releaseDeleted), writeNothing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := chooseWrite(tc.facts); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestReadyCondition(t *testing.T) {
	all := func(changes ...func(map[string]metav1.ConditionStatus)) []metav1.Condition {
		statuses := map[string]metav1.ConditionStatus{"TargetFound": "True", "SourceFound": "True", "DependenciesReady": "True", "Installed": "True"}
		for _, change := range changes {
			change(statuses)
		}
		var out []metav1.Condition
		for kind, status := range statuses {
			out = append(out, metav1.Condition{Type: kind, Status: status, Reason: kind + "Reason", Message: "M"})
		}
		return out
	}
	for _, tc := range []struct {
		name       string
		conditions []metav1.Condition
		want       string
	}{
		{"all true", all(), "True Installed"},
		{"one is missing", all(func(s map[string]metav1.ConditionStatus) { delete(s, "SourceFound") }), "Unknown Installing: Waiting for condition SourceFound"},
		{
			"the first that is not true", all(func(s map[string]metav1.ConditionStatus) { s["DependenciesReady"], s["Installed"] = "False", "Unknown" }),
			"False DependenciesReadyReason: M",
		},
		{"unknown", all(func(s map[string]metav1.ConditionStatus) { s["Installed"] = "Unknown" }), "Unknown InstalledReason: M"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(readyCondition(tc.conditions)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	f := installed(func(f *facts) { f.upgrades = []packagesv1.PackageAvailableUpgrade{{Version: "0.2.0", Tag: "v1-36-2"}} })
	report(f.pack, f)
	want := packagesv1.PackageStatus{
		State: "installed", CurrentVersion: "0.1.0", TargetVersion: "0.1.0 (latest)", ObservedGeneration: 4, Spec: f.pack.Spec,
		Source: sourceOf(f.found), Target: f.target, UpgradesAvailable: f.upgrades, Conditions: f.pack.Status.Conditions,
	}
	if diff := cmp.Diff(want, f.pack.Status); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, c := range f.pack.Status.Conditions {
		if c.Status != metav1.ConditionTrue || c.ObservedGeneration != 4 {
			t.Errorf("condition %+v", c)
		}
	}

	t.Log("unknown facts keep the previous values")
	lost := installed(noTarget)
	lost.pack = f.pack
	report(lost.pack, lost)
	if got := f.pack.Status; got.State != "installed" || got.CurrentVersion != "0.1.0" || got.Target == nil || got.Source != want.Source {
		t.Errorf("status is %+v", got)
	}
	for kind, status := range map[string]metav1.ConditionStatus{
		packagesv1.TargetFound: "False", packagesv1.SourceFound: "True", packagesv1.Installed: "True", packagesv1.Ready: "False",
	} {
		if c := meta.FindStatusCondition(f.pack.Status.Conditions, kind); c == nil || c.Status != status {
			t.Errorf("condition %s is %+v, want %s", kind, c, status)
		}
	}
}

func TestRejectedConfigKeepsTheInstalledSpec(t *testing.T) {
	f := installed(badConfig)
	f.pack.Status = packagesv1.PackageStatus{State: "installed", CurrentVersion: "0.1.0", Spec: packagesv1.PackageSpec{PackageName: "hello", Config: "old: 1"}}
	report(f.pack, f)
	if got := f.pack.Status; got.Spec.Config != "old: 1" || got.CurrentVersion != "0.1.0" || got.TargetVersion != "0.1.0 (latest)" {
		t.Errorf("status is %+v", got)
	}
}

func TestConditionsAreBounded(t *testing.T) {
	long := errors.New(strings.Repeat("é", text.MaxMessage))
	for _, c := range []*metav1.Condition{
		targetCondition(installed(func(f *facts) { f.targetErr = &target.UnknownError{Message: long.Error()} })),
		sourceCondition(installed(func(f *facts) { f.verifyErr = long })),
		dependenciesCondition(installed(func(f *facts) { f.dependencyErr = &dependencyError{"lib", long} })),
		installedCondition(installed(func(f *facts) { f.namespaceErr = long })),
	} {
		if len(c.Message) > text.MaxMessage {
			t.Errorf("the message of %s is %d bytes", c.Type, len(c.Message))
		}
	}
}
