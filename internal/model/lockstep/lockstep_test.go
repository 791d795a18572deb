package lockstep

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

const (
	old = "v1.35.4"
	to  = "v1.36.3"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// at is an upgrade that entered a step some time ago.
func at(s Step, ago time.Duration) *Upgrade {
	return &Upgrade{From: old, To: to, Step: s, Since: metav1.NewTime(now.Add(-ago))}
}

func addOn(stage addonsv1.UpgradeStage, problem string) AddOn {
	return AddOn{Kind: "HelmChartProxy", Name: strings.ToLower(string(stage)), Stage: stage, Problem: problem}
}

func TestDecide(t *testing.T) {
	before, between, after := addOn(addonsv1.BeforeControlPlane, "x"), addOn(addonsv1.BeforeWorkers, "x"), addOn(addonsv1.AfterWorkers, "x")
	all := []AddOn{before, between, after}
	for _, tc := range []struct {
		name    string
		facts   Facts
		step    Step // empty: no upgrade
		version string
		hold    bool
		waiting []AddOn
		skipped []AddOn
		late    bool
	}{
		{name: "a new cluster", facts: Facts{Wanted: to}, version: to},
		{name: "nothing to do", facts: Facts{Wanted: to, Present: to, AddOns: all}, version: to},
		{name: "an older version is built as wanted", facts: Facts{Wanted: old, Present: to, AddOns: all}, version: old},
		{name: "an upgrade without add-ons starts", facts: Facts{Wanted: to, Present: old}, step: ControlPlane, version: to, hold: true},
		{name: "an upgrade waits at first", facts: Facts{Wanted: to, Present: old, AddOns: all}, step: BeforeControlPlane, version: old, hold: true, waiting: []AddOn{before}},
		{name: "ready add-ons are not waited for", facts: Facts{Wanted: to, Present: old, AddOns: []AddOn{addOn(addonsv1.BeforeControlPlane, ""), between}}, step: ControlPlane, version: to, hold: true},
		{name: "it keeps waiting", facts: Facts{Recorded: at(BeforeControlPlane, time.Minute), Wanted: to, Present: old, AddOns: all}, step: BeforeControlPlane, version: old, hold: true, waiting: []AddOn{before}},
		{name: "it takes too long", facts: Facts{Recorded: at(BeforeControlPlane, time.Hour), Wanted: to, Present: old, AddOns: all}, step: BeforeControlPlane, version: old, hold: true, waiting: []AddOn{before}, late: true},
		{name: "the user overrides it", facts: Facts{Recorded: at(BeforeControlPlane, time.Hour), Wanted: to, Present: old, AddOns: all, Skip: "1.36"}, step: ControlPlane, version: to, hold: true, skipped: []AddOn{before}},
		{name: "the user overrode another upgrade", facts: Facts{Recorded: at(BeforeControlPlane, 0), Wanted: to, Present: old, AddOns: all, Skip: "1.35"}, step: BeforeControlPlane, version: old, hold: true, waiting: []AddOn{before}},
		{name: "the control plane rolls", facts: Facts{Recorded: at(ControlPlane, 0), Wanted: to, Present: to, AddOns: all}, step: ControlPlane, version: to, hold: true},
		{name: "the control plane is done", facts: Facts{Recorded: at(ControlPlane, 0), Wanted: to, Present: to, AddOns: all, ControlPlaneDone: true}, step: BeforeWorkers, version: to, hold: true, waiting: []AddOn{between}},
		{name: "workers may go", facts: Facts{Recorded: at(BeforeWorkers, 0), Wanted: to, Present: to, AddOns: []AddOn{after}, ControlPlaneDone: true}, step: Workers, version: to},
		{name: "add-ons of earlier stages no longer matter", facts: Facts{Recorded: at(Workers, 0), Wanted: to, Present: to, AddOns: all, ControlPlaneDone: true}, step: Workers, version: to},
		{name: "workers are done", facts: Facts{Recorded: at(Workers, 0), Wanted: to, Present: to, AddOns: all, ControlPlaneDone: true, WorkersDone: true}, step: AfterWorkers, version: to, waiting: []AddOn{after}},
		{name: "everything is done", facts: Facts{Recorded: at(AfterWorkers, 0), Wanted: to, Present: to, AddOns: []AddOn{before, between}}, version: to},
		{name: "the spec returns to the old version", facts: Facts{Recorded: at(BeforeControlPlane, 0), Wanted: old, Present: old, AddOns: all}, version: old},
		{name: "the spec goes further", facts: Facts{Recorded: at(Workers, 0), Wanted: "v1.37.0", Present: to, AddOns: all}, step: BeforeControlPlane, version: to, hold: true, waiting: []AddOn{before}},
		{name: "the record was lost after the control plane changed", facts: Facts{Recorded: at(BeforeControlPlane, 0), Wanted: to, Present: to, AddOns: all}, step: ControlPlane, version: to, hold: true},
		{name: "somebody else upgraded the control plane", facts: Facts{Recorded: at(BeforeControlPlane, 0), Wanted: to, Present: "v1.36.4", AddOns: all}, version: to},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.facts.Now, tc.facts.Timeout = now, DefaultTimeout
			d := Decide(tc.facts)
			step := Step("")
			if d.Upgrade != nil {
				step = d.Upgrade.Step
			}
			if step != tc.step || d.Version != tc.version || d.HoldWorkers != tc.hold || d.TimedOut != tc.late {
				t.Errorf("step %q, version %s, hold %t, late %t; want %q, %s, %t, %t", step, d.Version, d.HoldWorkers, d.TimedOut, tc.step, tc.version, tc.hold, tc.late)
			}
			if diff := cmp.Diff(tc.waiting, d.Waiting); diff != "" {
				t.Errorf("waiting for (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.skipped, d.Skipped); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
			if wakes := d.Next > 0; wakes != (len(tc.waiting) > 0 && !tc.late) {
				t.Errorf("decides again after %s", d.Next)
			}
		})
	}
}

func TestStageOf(t *testing.T) {
	release := func(chart string, change func(*addonsv1.HelmReleaseProxy)) *addonsv1.HelmReleaseProxy {
		r := &addonsv1.HelmReleaseProxy{}
		r.Spec.ChartName = chart
		r.Status.Applied = &addonsv1.AppliedRelease{}
		if change != nil {
			change(r)
		}
		return r
	}
	declares := func(stage addonsv1.UpgradeStage) func(*addonsv1.HelmReleaseProxy) {
		return func(r *addonsv1.HelmReleaseProxy) { r.Status.Applied.UpgradeStage = stage }
	}
	supports := func(constraint string) func(*addonsv1.HelmReleaseProxy) {
		return func(r *addonsv1.HelmReleaseProxy) { r.Status.Applied.Kubernetes = constraint }
	}
	for _, tc := range []struct {
		name, declared string
		release        *addonsv1.HelmReleaseProxy
		want           addonsv1.UpgradeStage
	}{
		{"nothing is known", "", release("web", nil), addonsv1.NoStage},
		{"nothing is installed", "", &addonsv1.HelmReleaseProxy{}, addonsv1.NoStage},
		{"the chart declares it", "", release("web", declares(addonsv1.AfterWorkers)), addonsv1.AfterWorkers},
		{"the user overrides the chart", "None", release("web", declares(addonsv1.AfterWorkers)), addonsv1.NoStage},
		{"the chart overrides its name", "", release("cilium", declares(addonsv1.AfterWorkers)), addonsv1.AfterWorkers},
		{"a mistake is ignored", "before", release("web", declares(addonsv1.AfterWorkers)), addonsv1.AfterWorkers},
		{"a network", "", release("cilium", nil), addonsv1.BeforeControlPlane},
		{"a driver of storage", "", release("vsphere-csi-driver", nil), addonsv1.BeforeControlPlane},
		{"a cloud provider", "", release("aws-cloud-controller-manager", nil), addonsv1.BeforeWorkers},
		{"a cloud provider by its short name", "", release("charts/vsphere-cpi", nil), addonsv1.BeforeWorkers},
		{"part of a word", "", release("csinode-exporter", nil), addonsv1.NoStage},
		{"it doesn't support the version", "", release("web", supports(">= 1.30, < 1.36")), addonsv1.BeforeControlPlane},
		{"it supports the version", "", release("web", supports(">= 1.30-0")), addonsv1.NoStage},
		{"its stage counts more than what it supports", "", release("aws-cloud-controller-manager", supports("~1.35")), addonsv1.BeforeWorkers},
		{"it was upgraded early and supports the version now", "", release("web", func(r *addonsv1.HelmReleaseProxy) {
			r.Annotations = map[string]string{addonsv1.KubernetesVersionAnnotation: to}
		}), addonsv1.BeforeControlPlane},
		{"it was upgraded early last time", "", release("web", func(r *addonsv1.HelmReleaseProxy) {
			r.Annotations = map[string]string{addonsv1.KubernetesVersionAnnotation: old}
		}), addonsv1.NoStage},
		{"it never changes", "BeforeWorkers", release("cilium", func(r *addonsv1.HelmReleaseProxy) { r.Spec.ReconcileStrategy = addonsv1.InstallOnce }), addonsv1.NoStage},
	} {
		if got := StageOf(tc.declared, tc.release, to); got != tc.want {
			t.Errorf("%s: stage %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestVersionThatAnAddOnSees(t *testing.T) {
	for _, tc := range []struct {
		upgrade *Upgrade
		stage   addonsv1.UpgradeStage
		want    string
	}{
		{nil, addonsv1.BeforeControlPlane, ""},
		{at(BeforeControlPlane, 0), addonsv1.BeforeControlPlane, to},
		{at(BeforeControlPlane, 0), addonsv1.BeforeWorkers, old},
		{at(ControlPlane, 0), addonsv1.BeforeWorkers, old},
		{at(BeforeWorkers, 0), addonsv1.BeforeWorkers, to},
		{at(Workers, 0), addonsv1.AfterWorkers, old},
		{at(AfterWorkers, 0), addonsv1.AfterWorkers, to},
		{at(AfterWorkers, 0), addonsv1.NoStage, ""},
	} {
		if got := tc.upgrade.Version(tc.stage); got != tc.want {
			t.Errorf("in %+v, %s sees %q, want %q", tc.upgrade, tc.stage, got, tc.want)
		}
	}
}

func TestProblem(t *testing.T) {
	good := func() *addonsv1.HelmReleaseProxy {
		r := &addonsv1.HelmReleaseProxy{ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{addonsv1.KubernetesVersionAnnotation: to}}}
		r.Status.ObservedGeneration = 2
		r.Status.Conditions = []metav1.Condition{{Type: clusterv1.ReadyCondition, Status: metav1.ConditionTrue}}
		r.Status.Applied = &addonsv1.AppliedRelease{Version: "1.35.2", Kubernetes: ">= 1.30"}
		return r
	}
	for _, tc := range []struct {
		name   string
		change func(*addonsv1.HelmReleaseProxy)
		want   string
	}{
		{"ready", func(*addonsv1.HelmReleaseProxy) {}, ""},
		{"not rendered", func(r *addonsv1.HelmReleaseProxy) { r.Annotations = nil }, "not rendered for v1.36.3"},
		{"changed", func(r *addonsv1.HelmReleaseProxy) { r.Generation++ }, "not been observed"},
		{"not ready", func(r *addonsv1.HelmReleaseProxy) {
			r.Status.Conditions[0].Status, r.Status.Conditions[0].Message = metav1.ConditionFalse, "Pods are missing"
		}, "Pods are missing"},
		{"too old", func(r *addonsv1.HelmReleaseProxy) { r.Status.Applied.Kubernetes = "< 1.36" }, "version 1.35.2 of its chart supports Kubernetes < 1.36 only"},
		{"going", func(r *addonsv1.HelmReleaseProxy) { r.DeletionTimestamp = &metav1.Time{Time: now} }, "uninstalled"},
	} {
		r := good()
		tc.change(r)
		if got := Problem(r, to, true); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
	r := good()
	r.Annotations = nil
	if got := Problem(r, to, false); got != "" {
		t.Errorf("a release that doesn't follow the cluster: %q", got)
	}
}

func TestRecordSurvives(t *testing.T) {
	was := at(Workers, time.Minute)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{addonsv1.KubernetesUpgradeAnnotation: was.String()}}}
	is := Of(c)
	if is == nil || is.From != was.From || is.To != was.To || is.Step != was.Step || !is.Since.Equal(&was.Since) {
		t.Errorf("read %+v, want %+v", is, was)
	}
	for _, broken := range []string{"", "{", "{}", `{"from":"v1.35.4","to":"v1.36.3","step":"Never"}`, `{"from":"","to":"v1.36.3","step":"Workers"}`} {
		c.Annotations[addonsv1.KubernetesUpgradeAnnotation] = broken
		if is := Of(c); is != nil {
			t.Errorf("read %+v from %q", is, broken)
		}
	}
}

func TestMessageIsBoundedAndHelps(t *testing.T) {
	f := Facts{Recorded: at(BeforeControlPlane, time.Hour), Wanted: to, Present: old, Timeout: DefaultTimeout, Now: now}
	for range 100 {
		f.AddOns = append(f.AddOns, addOn(addonsv1.BeforeControlPlane, "Pods are missing"))
	}
	got := Decide(f).Message()
	for _, want := range []string{"before the control plane is upgraded to Kubernetes v1.36.3", "HelmChartProxy beforecontrolplane: Pods are missing", "and 97 more", anywherev1.SkipAddOnWaitAnnotation, `"1.36"`} {
		if !strings.Contains(got, want) {
			t.Errorf("message %q lacks %q", got, want)
		}
	}
	if len(got) > 1024 {
		t.Errorf("the message has %d characters", len(got))
	}
}

func TestTimeout(t *testing.T) {
	for value, want := range map[string]time.Duration{"": DefaultTimeout, "45m": 45 * time.Minute, "soon": DefaultTimeout, "-1m": DefaultTimeout} {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{anywherev1.AddOnWaitTimeoutAnnotation: value}}}
		if got := Timeout(c); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
