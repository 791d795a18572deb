package active

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/workload"
)

var (
	noon       = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	connection = &workload.Cluster{}
	errDown    = errors.New("pulling package bundle: fetch manifest: no answer")
)

// at returns a bundle with one version of a package.
func at(name, version string) *packagesv1.PackageBundle {
	return &packagesv1.PackageBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: packagesv1.PackageBundleSpec{Packages: []packagesv1.BundlePackage{{
			Name: "hello", Source: packagesv1.BundlePackageSource{Repository: "hello", Versions: []packagesv1.SourceVersion{{Name: version, Digest: "sha256:1"}}},
		}}},
	}
}

// quiet returns the facts of a cluster with the newest bundle, a minute after a check.
func quiet(changes ...func(*facts)) facts {
	f := facts{
		now: noon, name: "billy", identity: "a", connected: connection, version: "1.36",
		spec: &packagesv1.PackageBundleControllerSpec{
			ActiveBundle: "v1-36-5", UpgradeCheckInterval: metav1.Duration{Duration: time.Hour}, UpgradeCheckShortInterval: metav1.Duration{Duration: 10 * time.Minute},
		},
		status: &packagesv1.PackageBundleControllerStatus{State: packagesv1.ControllerActive, LastCheck: &metav1.Time{Time: noon.Add(-time.Minute)}},
		place:  "latest", activePlace: "v1-36-5",
		latestCheck: check{place: "latest", at: noon.Add(-time.Minute), name: "v1-36-5"},
		active:      at("v1-36-5", "1.0.0"), latest: at("v1-36-5", "1.0.0"),
	}
	f.credentials.deletionTimeout = defaultDeletionTimeout
	for _, change := range changes {
		change(&f)
	}
	return f
}

func offered(name, version string) func(*facts) {
	return func(f *facts) { f.latestCheck.name, f.latest = name, at(name, version) }
}

func policy(p packagesv1.UpgradePolicy) func(*facts) {
	return func(f *facts) { f.spec.UpgradePolicy, f.installed = p, []string{"hello"} }
}

func TestDecide(t *testing.T) {
	rest := time.Hour + jitter("a", time.Hour) - time.Minute
	for name, test := range map[string]struct {
		facts facts
		want  choice
	}{
		"nothing to do":        {quiet(), choice{state: "active", after: rest, sync: true}},
		"in another namespace": {quiet(func(f *facts) { f.ignored = true }), choice{state: "ignored"}},
		"a newer one":          {quiet(offered("v1-36-10", "2.0.0")), choice{state: "upgrade available", detail: "v1-36-10 available", after: rest, sync: true}},
		"an older one":         {quiet(offered("v1-36-4", "1.0.0")), choice{state: "active", after: rest, sync: true}},
		"a newer one and policy always": {
			quiet(offered("v1-36-10", "2.0.0"), policy("always")),
			choice{state: "upgrade available", detail: "v1-36-10 available", activate: "v1-36-10", after: rest, sync: true},
		},
		"a newer one with another minor version and policy patch": {
			quiet(offered("v1-36-10", "1.1.0"), policy("patch")), choice{state: "upgrade available", detail: "v1-36-10 available", after: rest, sync: true},
		},
		"a newer one with the same minor version and policy patch": {
			quiet(offered("v1-36-10", "1.0.7"), policy("patch")),
			choice{state: "upgrade available", detail: "v1-36-10 available", activate: "v1-36-10", after: rest, sync: true},
		},
		"a newer one that is not signed, and policy always": {
			quiet(offered("v1-36-10", "2.0.0"), policy("always"), func(f *facts) { f.latestFault = errDown }),
			choice{state: "upgrade available", detail: "v1-36-10 available", after: rest, sync: true},
		},
		"an older one and policy always": {quiet(offered("v1-36-4", "1.0.0"), policy("always")), choice{state: "active", after: rest, sync: true}},
		"one for another Kubernetes and policy always": {
			quiet(offered("v1-37-1", "1.0.0"), policy("always")), choice{state: "upgrade available", detail: "v1-37-1 available", after: rest, sync: true},
		},
		"none chosen": {quiet(func(f *facts) { f.spec.ActiveBundle, f.active = "", nil }), choice{activate: "v1-36-5", after: rest, sync: true}},
		"none chosen and none found": {
			quiet(func(f *facts) { f.spec.ActiveBundle, f.active, f.latest = "", nil, nil }), choice{after: rest, sync: true},
		},
		"none chosen, on an unreachable cluster": {
			quiet(func(f *facts) {
				f.spec.ActiveBundle, f.active, f.connected = "", nil, nil
				f.unreachable = &problem{message: "it is silent", after: time.Second}
			}),
			choice{state: "disconnected", detail: "it is silent", after: time.Second, sync: true},
		},
		"the chosen one is missing": {
			quiet(func(f *facts) { f.active = nil }),
			choice{state: "active", detail: `activeBundle "v1-36-5" not present on cluster`, checkActive: true, after: rest, sync: true},
		},
		"the chosen one could not be downloaded": {
			quiet(func(f *facts) {
				f.active, f.activeCheck = nil, check{place: "v1-36-5", at: noon.Add(-time.Minute), err: errDown}
			}),
			choice{state: "active", detail: `activeBundle "v1-36-5" not present on cluster: ` + errDown.Error(), after: 9 * time.Minute, sync: true},
		},
		"the chosen one could not be downloaded, and new credentials": {
			quiet(func(f *facts) {
				f.active, f.activeCheck, f.access = nil, check{place: "v1-36-5", at: noon.Add(-time.Minute), err: errDown}, "new"
			}),
			choice{state: "active", detail: `activeBundle "v1-36-5" not present on cluster: ` + errDown.Error(), checkActive: true, after: rest, sync: true},
		},
		"check is due":     {quiet(func(f *facts) { f.latestCheck.at = noon.Add(-2 * time.Hour) }), choice{state: "active", checkLatest: true, sync: true}},
		"never checked":    {quiet(func(f *facts) { f.latestCheck = check{} }), choice{state: "active", checkLatest: true, sync: true}},
		"another registry": {quiet(func(f *facts) { f.latestCheck.place = "other" }), choice{state: "active", checkLatest: true, sync: true}},
		"a registry that failed": {
			quiet(func(f *facts) { f.latestCheck.err = errDown }), choice{state: "disconnected", detail: errDown.Error(), after: 9 * time.Minute, sync: true},
		},
		"a registry that never worked": {
			quiet(func(f *facts) { f.latestCheck.err, f.latestCheck.at, f.status.LastCheck = errDown, noon, nil }),
			choice{state: "disconnected", detail: errDown.Error(), after: firstRetry, sync: true},
		},
		"a registry that failed, and new credentials": {
			quiet(func(f *facts) { f.latestCheck.err, f.access = errDown, "new" }), choice{state: "disconnected", detail: errDown.Error(), checkLatest: true, sync: true},
		},
		"a registry with an unsigned bundle": {
			quiet(func(f *facts) { f.latestCheck.err, f.latestCheck.refused = errDown, true }), choice{state: "active", detail: errDown.Error(), after: 9 * time.Minute, sync: true},
		},
		"a cluster that became unreachable while an upgrade was available": {
			quiet(offered("v1-36-10", "2.0.0"), func(f *facts) { f.unreachable, f.connected = &problem{message: "it is not connected"}, nil }),
			choice{state: "disconnected", detail: "it is not connected", after: rest, sync: true},
		},
		"a cluster that is reachable again": {
			quiet(func(f *facts) {
				f.versionStale, f.status.State, f.status.Detail = true, "disconnected", "it is not connected"
			}),
			choice{state: "disconnected", detail: "it is not connected", queryVersion: true, after: rest, sync: true},
		},
		"nothing is known yet": {
			quiet(func(f *facts) { f.versionStale, f.version, f.place, f.status.State = true, "", "", "" }), choice{queryVersion: true, sync: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, decide(test.facts), cmp.AllowUnexported(choice{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecideRemoval(t *testing.T) {
	deleted := func(changes ...func(*facts)) facts {
		f := quiet(changes...)
		f.hasFinalizer = true
		f.deleting, f.deletingFor = noon.Add(-time.Minute), time.Minute
		for _, change := range changes {
			change(&f)
		}
		return f
	}
	silent := func(f *facts) { f.connected, f.unreachable = nil, &problem{message: "silent", after: time.Second} }
	for name, test := range map[string]struct {
		facts facts
		want  choice
	}{
		"no finalizer":              {deleted(func(f *facts) { f.hasFinalizer = false }), choice{state: "active", ends: true}},
		"reachable cluster":         {deleted(), choice{state: "active", withdraw: true, after: 9 * time.Minute}},
		"all copies deleted":        {deleted(func(f *facts) { f.credentials.withdrawn = true }), choice{state: "active", ends: true}},
		"deletion of copies failed": {deleted(func(f *facts) { f.credentials.after = time.Second }), choice{state: "active", after: time.Second}},
		"deleted cluster":           {deleted(silent, func(f *facts) { f.gone = true }), choice{state: "active", ends: true}},
		"unreachable cluster":       {deleted(silent), choice{state: "active", after: time.Second}},
		"unreachable for too long": {
			deleted(silent, func(f *facts) { f.deletingFor = defaultDeletionTimeout }), choice{state: "active", ends: true, abandon: "the cluster was unreachable for 10m0s"},
		},
		"unreachable for a minute, the clock was set forward a year": {
			deleted(silent, func(f *facts) { f.deleting = noon.AddDate(-1, 0, 0) }), choice{state: "active", after: time.Second},
		},
		"unreachable for too long, the clock was set back a year": {
			deleted(silent, func(f *facts) { f.deleting, f.deletingFor = noon.AddDate(1, 0, 0), defaultDeletionTimeout }),
			choice{state: "active", ends: true, abandon: "the cluster was unreachable for 10m0s"},
		},
		"abandoned by the user": {deleted(silent, func(f *facts) { f.abandoned = true }), choice{state: "active", ends: true, abandon: "the object is annotated with packages.eks.amazonaws.com/abandon"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, decide(test.facts), cmp.AllowUnexported(choice{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestChecksAreSpreadOverTheInterval(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, identity := range []string{"a", "b", "c", "d", "e"} {
		j := jitter(identity, time.Hour)
		if j < 0 || j >= 6*time.Minute || j != jitter(identity, time.Hour) {
			t.Errorf("jitter(%q) = %s", identity, j)
		}
		seen[j] = true
	}
	if len(seen) < 4 {
		t.Errorf("%d different times for 5 objects", len(seen))
	}
}
