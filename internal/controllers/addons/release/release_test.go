package release_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/workload/tool"
)

type spec = addonsv1.HelmReleaseProxySpec

func TestManuallyCreatedReleaseIsInstalledAndRemoved(t *testing.T) {
	w := newWorld(t)
	cluster := w.cluster("one")
	r := w.release("web", "one", func(s *spec) { s.ReleaseName, s.Values = "", "replicas: 2\n" })
	got := w.await(r, "the release is ready", isReady)
	if got.Spec.ReleaseName == "" || got.Annotations[addonsv1.GeneratedNameAnnotation] != "true" || got.Annotations[addonsv1.InstalledAnnotation] != "true" {
		t.Errorf("name %q, annotations %v", got.Spec.ReleaseName, got.Annotations)
	}
	if got.Status.Status != tool.Deployed || got.Status.Revision != 1 || got.Labels[clusterv1.ClusterNameLabel] != "one" {
		t.Errorf("status %+v, labels %v", got.Status, got.Labels)
	}
	want := w.tool.want(client.ObjectKeyFromObject(cluster), "addons", got.Spec.ReleaseName)
	if diff := cmp.Diff(map[string]any{"replicas": int64(2)}, normal(want.Values)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if err := w.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.await(r, "the object is gone", func(r *addonsv1.HelmReleaseProxy) bool { return r == nil })
	if diff := cmp.Diff([]string{"apply", "remove"}, w.tool.did(got.Spec.ReleaseName)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// normal converts whole numbers to one type.
func normal(values map[string]any) map[string]any {
	for k, v := range values {
		switch n := v.(type) {
		case float64:
			values[k] = int64(n)
		case int:
			values[k] = int64(n)
		}
	}
	return values
}

func TestIdleReleaseMakesNoRequests(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	r := w.release("web", "one")
	before := w.await(r, "the release is ready", isReady)
	for i := range 5 {
		w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Labels["touched"] = string(rune('a' + i)) })
	}
	other := w.release("later", "one")
	w.await(other, "a later release is ready", isReady)
	if diff := cmp.Diff([]string{"apply"}, w.tool.did("web")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	after := w.get(r)
	if diff := cmp.Diff(before.Status, after.Status); diff != "" {
		t.Errorf("status changed (-before +after):\n%s", diff)
	}
}

func TestInstallWritesStatusOnce(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	writes := w.countStatusWrites()
	r := w.release("web", "one")
	w.await(r, "the release is ready", isReady)
	w.release("later", "one")
	if n := writes(r); n != 1 {
		t.Errorf("the status was written %d times, want once", n)
	}
}

func TestChangesAreApplied(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	values := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "values"}, Data: map[string][]byte{"values.yaml": []byte("a: 1\nb: 1\n")}}
	w.create(values)
	r := w.release("web", "one", func(s *spec) {
		s.Values = "b: 2\n"
		s.ValuesFrom = []addonsv1.ValuesSource{{Kind: "Secret", Name: "values"}, {Kind: "ConfigMap", Name: "absent", Optional: true}}
	})
	w.await(r, "the release is ready", isReady)
	key := client.ObjectKey{Namespace: w.namespace, Name: "one"}
	revision := func(n int) func(*addonsv1.HelmReleaseProxy) bool {
		return func(r *addonsv1.HelmReleaseProxy) bool { return isReady(r) && r.Status.Revision == n }
	}
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": int64(2)}, normal(w.tool.want(key, "addons", "web").Values)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	t.Log("values of the release itself")
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Spec.Values = "b: 3\n" })
	w.await(r, "revision 2", revision(2))
	t.Log("values from a Secret")
	values.Data["values.yaml"] = []byte("a: 5\n")
	if err := w.client.Update(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	w.await(r, "revision 3", revision(3))
	if diff := cmp.Diff(map[string]any{"a": int64(5), "b": int64(3)}, normal(w.tool.want(key, "addons", "web").Values)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	t.Log("a ConfigMap that was not there")
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "absent"}, Data: map[string]string{"values.yaml": "c: 1\n"}})
	w.await(r, "revision 4", revision(4))
	t.Log("options")
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Spec.Options.SkipCRDs = true })
	w.await(r, "revision 5", revision(5))
	t.Log("the version")
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Spec.Version = "2.0.0" })
	w.await(r, "revision 6", revision(6))
	t.Log("a foreign upgrade")
	w.tool.set(func(f *fakeTool) {
		state := f.releases[key.String()+" addons/web"]
		state.Revision, state.Stamp = 9, "theirs"
		f.releases[key.String()+" addons/web"] = state
	})
	w.tool.tell(recordOf(key, tool.ID{Namespace: "addons", Name: "web"}))
	w.await(r, "revision 10", revision(10))
}

func TestFailureIsReportedAndRetriedLater(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	w.tool.set(func(f *fakeTool) { f.fail["web"] = &tool.TerminalError{Err: errors.New("the chart is broken")} })
	r := w.release("web", "one")
	got := w.await(r, "the failure is reported", reason(addonsv1.ReleaseReady, addonsv1.InstallOrUpgradeFailedReason))
	if c := condition(got, addonsv1.ReleaseReady); c.Message != "The chart is broken" {
		t.Errorf("message = %q", c.Message)
	}
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Labels["touched"] = "yes" })
	good := w.release("good", "one")
	w.await(good, "another release is ready", isReady)
	if n := len(w.tool.did("web")); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}

	t.Log("other values are tried at once")
	w.tool.set(func(f *fakeTool) { delete(f.fail, "web") })
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Spec.Values = "a: 1\n" })
	w.await(r, "the release is ready", isReady)
}

func TestMissingChartIsReported(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	r := w.release("unknown", "one")
	got := w.await(r, "the chart is looked for", func(r *addonsv1.HelmReleaseProxy) bool {
		c := condition(r, addonsv1.ReleaseReady)
		return c.Reason == addonsv1.InstallOrUpgradeFailedReason && c.Message == `Looking for chart "unknown": not found`
	})
	if isReady(got) {
		t.Error("a release without a chart is ready")
	}
}

func TestMissingCredentialsAreReportedAndUsedOnceCreated(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	r := w.release("web", "one", func(s *spec) {
		s.Credentials = &addonsv1.Credentials{Secret: corev1.SecretReference{Name: "login"}, Key: "config.json"}
	})
	w.await(r, "the Secret is missed", reason(addonsv1.ClusterAvailable, addonsv1.GetCredentialsFailedReason))
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "login"}, Data: map[string][]byte{"config.json": []byte("{}")}})
	w.await(r, "the release is ready", isReady)
}

func TestNewRevisionCancelsTheRunningOne(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	w.tool.set(func(f *fakeTool) { f.hold["web"] = make(chan struct{}) })
	r := w.release("web", "one")
	w.until("the installation began", func() bool { return len(w.tool.did("web")) == 1 }, func() any { return w.tool.did("web") })
	w.tool.set(func(f *fakeTool) { delete(f.hold, "web") })
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Spec.Values = "a: 1\n" })
	w.await(r, "the release is ready", isReady)
	if diff := cmp.Diff([]string{"apply", "apply"}, w.tool.did("web")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestDependenciesAreInstalledFirst(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	w.cluster("two")
	hold := make(chan struct{})
	w.tool.set(func(f *fakeTool) { f.hold["base"] = hold })
	web := w.release("web", "one", func(s *spec) { s.DependsOn = []string{"base"} })
	w.release("base", "two")
	got := w.await(web, "it waits", reason(addonsv1.ReleaseReady, addonsv1.WaitingForDependenciesReason))
	if len(w.tool.did("web")) != 0 {
		t.Error("it was installed before what it depends on")
	}
	if c := condition(got, addonsv1.ReleaseReady); c.Message != "Waiting for base to become ready on the cluster" {
		t.Errorf("message = %q", c.Message)
	}
	w.release("base", "one")
	close(hold)
	w.await(web, "the release is ready", isReady)
}

func TestDuplicateClaimGoesToTheOlderRelease(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	first := w.release("web", "one")
	w.await(first, "the first is ready", isReady)
	second := w.release("clone", "one", func(s *spec) { s.ReleaseName = "web" })
	told := w.await(second, "the second reports the claim", reason(addonsv1.ReleaseReady, addonsv1.ReleaseClaimedReason))
	if told.Status.Status != "" || told.Status.Revision != 0 {
		t.Errorf("the second shows revision %d that is %q, which is the first's", told.Status.Revision, told.Status.Status)
	}
	w.await(first, "the first reports the claim", reason(addonsv1.ReleaseExclusive, addonsv1.ReleaseClaimedReason))
	if got := w.get(first); !isReady(got) {
		t.Error("the first is not ready any more")
	}
	if diff := cmp.Diff([]string{"apply"}, w.tool.did("web")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	t.Log("the second gets it when the first goes")
	if err := w.client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.await(second, "the second is ready", isReady)
}

func TestMovedReleaseStaysInstalled(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	r := w.release("web", "one")
	w.await(r, "the release is ready", isReady)
	w.change(r, func(r *addonsv1.HelmReleaseProxy) {
		r.Annotations = map[string]string{clusterctlv1.DeleteForMoveAnnotation: ""}
	})
	if err := w.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.await(w.release("next", "one"), "one that came later is ready", isReady)
	if got := w.get(r); got == nil || got.Status.Status != tool.Deployed {
		t.Fatalf("the object did not wait for clusterctl: %+v", got)
	}
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Finalizers = nil })
	w.await(r, "the object is gone", func(r *addonsv1.HelmReleaseProxy) bool { return r == nil })
	if diff := cmp.Diff([]string{"apply"}, w.tool.did("web")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestUnreachableClusterBlocksOnlyItsReleases(t *testing.T) {
	w := newWorld(t)
	w.cluster("lost")
	w.cluster("one")
	bound := metav1.Duration{Duration: time.Second}
	lost := w.release("web", "lost", func(s *spec) { s.Options.Uninstall = &addonsv1.HelmUninstallOptions{GiveUpAfter: &bound} })
	r := w.release("web", "one")
	w.await(r, "the other is ready", isReady)
	w.await(lost, "the lost cluster is reported", reason(addonsv1.ClusterAvailable, addonsv1.NotAvailableReason))
	t.Log("what was installed before the cluster was lost can't be uninstalled")
	status := w.get(lost)
	before := status.DeepCopy()
	status.Status.Revision = 1
	if err := w.client.Status().Patch(t.Context(), status, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	w.await(lost, "it is given up", func(r *addonsv1.HelmReleaseProxy) bool { return r == nil })
	w.until("an event tells what was left behind", func() bool {
		events := &corev1.EventList{}
		if err := w.client.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "ReleaseAbandoned" })
	}, func() any { return nil })
}

func TestWaitingForReadinessHoldsNoWorker(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	w.tool.set(func(f *fakeTool) { f.health["web"] = tool.Health{Message: "Deployment web has 0 of 1"} })
	r := w.release("web", "one", func(s *spec) { s.Options.Wait = true })
	got := w.await(r, "it is pending", func(r *addonsv1.HelmReleaseProxy) bool {
		return condition(r, addonsv1.ReleaseReady).Message == "Deployment web has 0 of 1"
	})
	if c := condition(got, addonsv1.ReleaseReady); c.Reason != addonsv1.PendingReason || got.Status.Status != tool.Deployed {
		t.Errorf("condition %+v, status %q", c, got.Status.Status)
	}
	w.tool.set(func(f *fakeTool) { f.health["web"] = tool.Health{Ready: true} })
	w.tool.tell(objectOf(client.ObjectKey{Namespace: w.namespace, Name: "one"}, tool.ID{Namespace: "addons", Name: "web"}))
	w.await(r, "the release is ready", isReady)
}

func TestUnreadyAtomicUpgradeIsRolledBack(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	w.tool.set(func(f *fakeTool) { f.health["web"] = tool.Health{Ready: true} })
	r := w.release("web", "one", func(s *spec) {
		s.Options.Atomic, s.Options.Timeout = true, &metav1.Duration{Duration: time.Second}
	})
	w.await(r, "the release is ready", isReady)
	w.tool.set(func(f *fakeTool) { f.health["web"] = tool.Health{Message: "never"} })
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Spec.Values = "a: 1\n" })
	got := w.await(r, "it is reverted", func(r *addonsv1.HelmReleaseProxy) bool { return r.Status.Attempt != nil && r.Status.Attempt.Reverted })
	if c := condition(got, addonsv1.ReleaseReady); c.Reason != addonsv1.InstallOrUpgradeFailedReason {
		t.Errorf("condition %+v", c)
	}
	calls := slices.DeleteFunc(w.tool.did("web"), func(c string) bool { return c == "health" })
	if diff := cmp.Diff([]string{"apply", "apply", "revert"}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestDriftIsReportedOrCorrected(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	changed := []tool.Change{{Object: tool.Object{Name: "web"}, Action: tool.Update}}
	changed[0].Object.Kind = "Deployment"
	r := w.release("web", "one", func(s *spec) { s.Drift = &addonsv1.Drift{Mode: addonsv1.DriftReport} })
	w.await(r, "it is in sync", reason(addonsv1.ReleaseInSync, addonsv1.InSyncReason))
	w.tool.set(func(f *fakeTool) { f.drift["web"] = changed })
	w.tool.tell(objectOf(client.ObjectKey{Namespace: w.namespace, Name: "one"}, tool.ID{Namespace: "addons", Name: "web"}))
	got := w.await(r, "drift is reported", reason(addonsv1.ReleaseInSync, addonsv1.DriftedReason))
	if c := condition(got, addonsv1.ReleaseInSync); c.Message != "Found drift in Deployment web" {
		t.Errorf("message = %q", c.Message)
	}
	w.change(r, func(r *addonsv1.HelmReleaseProxy) { r.Spec.Drift.Mode = addonsv1.DriftCorrect })
	w.await(r, "drift is corrected", reason(addonsv1.ReleaseInSync, addonsv1.InSyncReason))
	if calls := w.tool.did("web"); !slices.Contains(calls, "correct") {
		t.Errorf("calls %v", calls)
	}
	if got := w.get(r); got.Status.Revision != 1 {
		t.Errorf("revision %d, want no new one", got.Status.Revision)
	}
}

func TestObjectStatusIsNotDrift(t *testing.T) {
	w := newWorld(t)
	w.cluster("one")
	r := w.release("web", "one", func(s *spec) { s.Drift = &addonsv1.Drift{Mode: addonsv1.DriftReport} })
	w.await(r, "it is in sync", reason(addonsv1.ReleaseInSync, addonsv1.InSyncReason))
	e := objectOf(client.ObjectKey{Namespace: w.namespace, Name: "one"}, tool.ID{Namespace: "addons", Name: "web"})
	e.StatusOnly = true
	for range 10 {
		w.tool.tell(e)
	}
	later := w.release("later", "one")
	w.await(later, "a later release is ready", isReady)
	if diff := cmp.Diff([]string{"apply", "diff"}, w.tool.did("web")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
