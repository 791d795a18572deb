package active

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/controllers/packages/mirror"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// printed is a condition on one line, "kept" if there is none.
func printed(c *metav1.Condition) string {
	if c == nil {
		return "kept"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), ": ")
}

func TestClusterCondition(t *testing.T) {
	known := []metav1.Condition{{Type: packagesv1.ClusterReachable, Status: metav1.ConditionTrue}}
	for _, tc := range []struct {
		name  string
		facts facts
		want  string
	}{
		{"reachable", quiet(), "True Reachable"},
		{
			"unreachable", quiet(func(f *facts) {
				f.unreachable = &problem{reason: "Unreachable", message: `Cluster "dev" is unreachable: timeout`}
			}), `False Unreachable: Cluster "dev" is unreachable: timeout`,
		},
		{
			"never queried", quiet(func(f *facts) { f.versionStale, f.cluster = true, client.ObjectKey{Namespace: "ns", Name: "dev"} }),
			`Unknown Asking: Waiting for Cluster "ns/dev" to report its version`,
		},
		{"queried again", quiet(func(f *facts) { f.versionStale, f.status.Conditions = true, known }), "kept"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(clusterCondition(tc.facts)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRegistryCondition(t *testing.T) {
	failing := func(err error) func(*facts) { return func(f *facts) { f.latestCheck.err = err } }
	known := []metav1.Condition{{Type: packagesv1.RegistryReachable, Status: metav1.ConditionTrue}}
	for _, tc := range []struct {
		name  string
		facts facts
		want  string
	}{
		{"reachable", quiet(), "True Reachable"},
		{"version unknown", quiet(func(f *facts) { f.place = "" }), "Unknown Waiting: Waiting for the first check for bundles"},
		{"never checked", quiet(func(f *facts) { f.latestCheck = check{} }), "Unknown Waiting: Waiting for the first check for bundles"},
		{"checked again", quiet(func(f *facts) { f.latestCheck, f.status.Conditions = check{}, known }), "kept"},
		{"unreachable", quiet(failing(errors.New("timeout"))), "False Unreachable: Checking for bundles failed: timeout"},
		{"not found", quiet(failing(artifact.ErrNotFound)), "False NotPresent: Checking for bundles failed: not found"},
		{"denied", quiet(failing(artifact.ErrForbidden)), "False AccessDenied: Checking for bundles failed: access denied"},
		{
			"unsigned", quiet(failing(bundle.ErrUnsigned), func(f *facts) { f.latestCheck.refused = true }),
			"False BundleRefused: Checking for bundles failed: Missing signature",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(registryCondition(tc.facts)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBundleCondition(t *testing.T) {
	inactive := func(f *facts) { f.spec.ActiveBundle, f.active = "", nil }
	for _, tc := range []struct {
		name  string
		facts facts
		want  string
	}{
		{"active", quiet(), "True Active"},
		{"none yet", quiet(inactive), "False NotPresent: No bundle is active: waiting for the newest bundle"},
		{
			"none usable", quiet(inactive, func(f *facts) { f.latestFault = bundle.ErrUnsigned }),
			`False NotPresent: No bundle is active: bundle "v1-36-5" cannot be used: Missing signature`,
		},
		{
			"missing", quiet(func(f *facts) { f.active = nil }),
			`False NotPresent: Active bundle is missing: activeBundle "v1-36-5" not present on cluster`,
		},
		{
			"too new", quiet(func(f *facts) { f.activeFault = &bundle.UpgradeRequiredError{Bundle: "b", Needs: "v2", Have: "v1"} }),
			"False ControllerUpgradeRequired: Upgrade Drover: bundle b requires Drover v2; this is v1",
		},
		{
			"unsigned", quiet(func(f *facts) { f.activeFault = bundle.ErrUnsigned }),
			`False BundleRefused: Bundle "v1-36-5" cannot be used: Missing signature`,
		},
		{
			"another Kubernetes version", quiet(func(f *facts) { f.version = "1.35" }),
			`False VersionMismatch: Bundle "v1-36-5" is for Kubernetes 1.36 but the cluster runs 1.35: activate a bundle whose name starts with v1-35-`,
		},
		{"version unknown", quiet(func(f *facts) { f.version = "" }), "True Active"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(bundleCondition(tc.facts)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCredentialsCondition(t *testing.T) {
	mirrored := func(f *facts) {
		m := &mirror.Mirror{Host: "mirror.example.com"}
		f.credentials.mirror = m
		f.credentials.made = &corev1.Secret{Data: m.Data()}
		f.credentials.namespaces = map[string]bool{"apps": true}
		f.credentials.sources = map[string]*corev1.Secret{mirror.Credentials: {}}
	}
	for _, tc := range []struct {
		name  string
		facts facts
		want  string
	}{
		{"no mirror", quiet(), "kept"},
		{"synced", quiet(mirrored), "True Synced"},
		{
			"an invalid mirror", quiet(func(f *facts) { f.credentials.invalid = errors.New("ENDPOINT is empty") }),
			"False Failed: Registry mirror is invalid: ENDPOINT is empty",
		},
		{
			"credentials for nobody", quiet(func(f *facts) { f.credentials.unbound = "ask an administrator" }),
			"False NotBound: ask an administrator",
		},
		{"credentials for others", quiet(func(f *facts) { f.credentials.denied = "ask an administrator" }), "kept"},
		{
			"a failed copy", quiet(mirrored, func(f *facts) { f.credentials.failed = errors.New("forbidden") }),
			"False Failed: Copying credentials failed: forbidden",
		},
		{"no local Secret", quiet(mirrored, func(f *facts) { f.credentials.made = nil }), "False Pending: Creating the Secret with credentials"},
		{
			"an unreachable cluster", quiet(mirrored, func(f *facts) { f.connected = nil }),
			"Unknown Pending: Waiting for the cluster to become reachable",
		},
		{
			"a missing copy", quiet(mirrored, func(f *facts) { f.credentials.plan.write = []secretKey{{"apps", mirror.Credentials}} }),
			"False Pending: Copying credentials to the cluster",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(credentialsCondition(tc.facts)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadyCondition(t *testing.T) {
	with := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "R", Message: "M"}
	}
	for _, tc := range []struct {
		name       string
		conditions []metav1.Condition
		want       string
	}{
		{"all true", []metav1.Condition{with("ClusterReachable", "True"), with("BundleActive", "True")}, "True Ready"},
		{"the first that is false", []metav1.Condition{with("RegistryReachable", "False"), with("BundleActive", "False")}, "False R: BundleActive: M"},
		{"false before unknown", []metav1.Condition{with("ClusterReachable", "Unknown"), with("CredentialsSynced", "False")}, "False R: CredentialsSynced: M"},
		{"unknown", []metav1.Condition{with("ClusterReachable", "Unknown")}, "Unknown R: ClusterReachable: M"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := printed(readyCondition(tc.conditions)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	o := &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	f := quiet()
	report(o, f, decide(f))
	want := packagesv1.PackageBundleControllerStatus{
		State: "active", Spec: f.spec, LatestBundle: "v1-36-5", KubernetesVersion: "1.36", ObservedGeneration: 7,
		LastCheck: f.status.LastCheck, Conditions: o.Status.Conditions,
	}
	if diff := cmp.Diff(want, o.Status); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !meta.IsStatusConditionTrue(o.Status.Conditions, packagesv1.Ready) {
		t.Errorf("conditions are %+v", o.Status.Conditions)
	}
	before := o.Status.DeepCopy()
	deleted := quiet(func(f *facts) { f.deleting = noon })
	report(o, deleted, choice{})
	if diff := cmp.Diff(*before, o.Status); diff != "" {
		t.Errorf("the status of a deleted object changed (-want +got)\n%s", diff)
	}
	report(o, quiet(func(f *facts) { f.ignored = true }), choice{state: "ignored"})
	if len(o.Status.Conditions) != 1 || o.Status.Conditions[0].Reason != "Ignored" {
		t.Errorf("conditions of an ignored object are %+v", o.Status.Conditions)
	}
}

func TestConditionsAreBounded(t *testing.T) {
	long := errors.New(strings.Repeat("é", text.MaxMessage))
	f := quiet(func(f *facts) { f.latestCheck.err, f.activeFault, f.credentials.failed = long, long, long })
	for _, c := range []*metav1.Condition{registryCondition(f), bundleCondition(f), credentialsCondition(f)} {
		if len(c.Message) > text.MaxMessage {
			t.Errorf("the message of %s is %d bytes", c.Type, len(c.Message))
		}
	}
}
