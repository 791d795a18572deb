package clusters_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// stageCharts are add-ons by the stage that they are upgraded in. Each finds that out in another
// way.
var stageCharts = map[addonsv1.UpgradeStage]string{
	addonsv1.BeforeControlPlane: "early",    // its Chart.yaml says so
	addonsv1.BeforeWorkers:      "demo-ccm", // its name says so
	addonsv1.AfterWorkers:       "late",     // its HelmChartProxy says so
}

// pushStages pushes the charts of add-ons.
func pushStages(t testing.TB, r *artifacttest.Registry) {
	t.Helper()
	for stage, name := range stageCharts {
		about := fmt.Sprintf("apiVersion: v2\nname: %s\nversion: 1.0.0\n", name)
		if stage == addonsv1.BeforeControlPlane {
			about += fmt.Sprintf("annotations: {%s: %s}\n", addonsv1.UpgradeStageAnnotation, stage)
		}
		r.Push(t, artifacttest.Package{Name: name, Version: "1.0.0", Archive: artifacttest.Archive(t, map[string]string{
			name + "/Chart.yaml":            about,
			name + "/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {kubernetes: {{ .Values.kubernetes | quote }}}\n",
		})})
	}
}

// addOn creates an add-on whose values depend on the Kubernetes version of the cluster. It can't be
// installed for a version before that is offered.
func (w *world) addOn(cluster string, stage addonsv1.UpgradeStage) {
	w.Helper()
	name := stageCharts[stage]
	chart := &addonsv1.HelmChartProxy{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name}}
	if stage == addonsv1.AfterWorkers {
		chart.Annotations = map[string]string{addonsv1.UpgradeStageAnnotation: string(stage)}
	}
	chart.Spec = addonsv1.HelmChartProxySpec{
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.ClusterNameLabel: cluster}},
		ChartName:       name, RepoURL: w.charts, Version: "1.0.0",
		ValuesTemplate: `kubernetes: "{{ .ControlPlane.spec.version }}"`,
	}
	chart.Spec.ValuesFrom = []addonsv1.ValuesSource{{Kind: "ConfigMap", Name: name + "-{{ .ControlPlane.spec.version }}"}}
	w.must(w.Create(w.Context(), chart))
}

// offer lets an add-on be installed for a version.
func (w *world) offer(stage addonsv1.UpgradeStage, version string) {
	w.Helper()
	w.must(w.Create(w.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: stageCharts[stage] + "-" + version}, Data: map[string]string{"values.yaml": "{}"},
	}))
}

// installedFor returns the Kubernetes version that each add-on is installed for.
func (w *world) installedFor(cluster string) map[addonsv1.UpgradeStage]string {
	w.Helper()
	all := &addonsv1.HelmReleaseProxyList{}
	w.must(w.List(w.Context(), all, client.InNamespace(anywherev1.SystemNamespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster}))
	out := map[addonsv1.UpgradeStage]string{}
	for stage, name := range stageCharts {
		for _, r := range all.Items {
			if r.Spec.ChartName == name && r.Status.ObservedGeneration == r.Generation && meta.IsStatusConditionTrue(r.Status.Conditions, clusterv1.ReadyCondition) {
				_, out[stage], _ = strings.Cut(strings.Trim(r.Spec.Values, "\"\n"), `"`)
			}
		}
	}
	return out
}

// waitsIn waits until the upgrade of a cluster waits for the add-on of a stage, and checks which
// versions machines and add-ons have.
func (w *world) waitsIn(cluster string, stage addonsv1.UpgradeStage, controlPlane, workers string) {
	w.Helper()
	w.until("it waits for "+stageCharts[stage], func() error {
		c := meta.FindStatusCondition(w.cluster(cluster).Status.Conditions, anywherev1.KubernetesUpgraded)
		if c == nil || c.Reason != anywherev1.WaitingForAddOnsReason || !strings.Contains(c.Message, "HelmChartProxy "+stageCharts[stage]+": ") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	plane := &controlplanev1.KubeadmControlPlane{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: cluster}, plane))
	group := &clusterv1.MachineDeployment{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: cluster + "-md-0"}, group))
	if plane.Spec.Version != controlPlane || group.Spec.Template.Spec.Version != workers {
		w.Errorf("control plane %s, workers %s; want %s, %s", plane.Spec.Version, group.Spec.Template.Spec.Version, controlPlane, workers)
	}
}

// TestUpgradeKeepsAddOnsInStep upgrades a cluster through the API, as a commit would, and finishes
// with a command that no longer waits.
func TestUpgradeKeepsAddOnsInStep(t *testing.T) {
	const old, now = "v1.35.4", "v1.36.3"
	w := newWorld(t, managertest.Checked)
	t.Chdir(t.TempDir())
	w.drover("create", "cluster", "-f", w.spec(named("steps")))
	for stage := range stageCharts {
		w.addOn("steps", stage)
		w.offer(stage, old)
	}
	has := func(early, ccm, late string) error {
		got := w.installedFor("steps")
		for stage, version := range map[addonsv1.UpgradeStage]string{addonsv1.BeforeControlPlane: early, addonsv1.BeforeWorkers: ccm, addonsv1.AfterWorkers: late} {
			if got[stage] != version {
				return fmt.Errorf("add-ons are installed for %v", got)
			}
		}
		return nil
	}
	w.until("add-ons are installed", func() error { return has(old, old, old) })

	w.change("steps", func(c *anywherev1.Cluster) { c.Spec.KubernetesVersion = "1.36" })
	w.waitsIn("steps", addonsv1.BeforeControlPlane, old, old)
	w.until("the other add-ons stay", func() error { return has("", old, old) })
	w.offer(addonsv1.BeforeControlPlane, now)
	w.waitsIn("steps", addonsv1.BeforeWorkers, now, old)
	w.until("the other add-ons stay", func() error { return has(now, "", old) })
	w.offer(addonsv1.BeforeWorkers, now)
	w.waitsIn("steps", addonsv1.AfterWorkers, now, now)
	w.until("the other add-ons stay", func() error { return has(now, now, "") })

	out, code := w.tryDrover("why", "cluster", "steps", "-n", w.ns)
	if code != 0 || !strings.Contains(out, "--skip-add-on-wait") && !strings.Contains(out, "drover addon status") {
		t.Errorf("drover why ended with %d:\n%s", code, out)
	}
	w.drover("upgrade", "cluster", "-f", w.spec(named("steps"), `"1.35"`, `"1.36"`), "--skip-add-on-wait")
	w.ready("steps", "1/1", "1/1")
	w.hasVersion("steps", now)
	w.offer(addonsv1.AfterWorkers, now)
	w.until("the last add-on follows", func() error { return has(now, now, now) })
	w.quiet()
}
