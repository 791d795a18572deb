package chart

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/history"
)

// fleet is four clusters with version 1 everywhere, and a rollout of one cluster, then those in
// zone b, then the rest.
func fleet(t *testing.T, change func(*addonsv1.Rollout)) *world {
	w := newWorld(t)
	w.cluster("a")
	w.cluster("b", "zone=b")
	w.cluster("c")
	w.cluster("d")
	w.chart(func(c *addonsv1.HelmChartProxy) {
		c.Spec.Version = "1"
		c.Spec.Rollout = &addonsv1.Rollout{Waves: []addonsv1.Wave{
			{Size: ptr.To(intstr.FromInt32(1))},
			{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "b"}}},
		}}
		change(c.Spec.Rollout)
	})
	for range 4 {
		w.run()
		for cluster := range w.all() {
			w.setReleaseState(cluster, true)
		}
		w.run()
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
	}
	w.run()
	w.phase(addonsv1.RolloutComplete)
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.version("2")
	return w
}

func (w *world) version(v string) {
	w.Helper()
	w.change(func(c *addonsv1.HelmChartProxy) { c.Spec.Version = v })
	w.run()
}

// clustersOn returns the clusters that have a version.
func (w *world) clustersOn(version string, want ...string) {
	w.Helper()
	var got []string
	for cluster, r := range w.all() {
		if r.Spec.Version == version {
			got = append(got, cluster)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("clusters with version %s (-want +got):\n%s", version, diff)
	}
}

func (w *world) phase(want addonsv1.RolloutPhase) *addonsv1.HelmChartProxy {
	w.Helper()
	c := w.run()
	if c.Status.Rollout == nil || c.Status.Rollout.Phase != want {
		w.Errorf("rollout is %+v, want phase %s", c.Status.Rollout, want)
	}
	return c
}

func TestRolloutProceedsInWaves(t *testing.T) {
	w := fleet(t, func(r *addonsv1.Rollout) { r.Soak = &metav1.Duration{Duration: 10 * time.Minute} })
	w.clustersOn("2", "a")
	c := w.phase(addonsv1.RolloutProgressing)
	w.has(c, addonsv1.RolloutCompleted, "False Progressing: Wave 1 of 3 is ready on 0 clusters and failed on 0")
	w.has(c, addonsv1.SpecsUpToDate, "False HelmReleaseProxySpecsUpdating: Rollout has not reached clusters b, c, d")
	w.setReleaseState("a", true)
	_, result, err := w.try()
	w.must(err)
	if result.RequeueAfter != 10*time.Minute {
		t.Errorf("got a requeue after %s, want 10m0s", result.RequeueAfter)
	}
	w.phase(addonsv1.RolloutSoaking)
	w.clustersOn("2", "a")
	w.quiet()
	w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
	w.run()
	w.clustersOn("2", "a", "b")
	w.setReleaseState("b", true)
	w.run()
	w.clock.SetTime(w.clock.Now().Add(10 * time.Minute))
	w.run()
	w.clustersOn("2", "a", "b", "c", "d")
	w.setReleaseState("c", true)
	w.setReleaseState("d", true)
	c = w.phase(addonsv1.RolloutComplete)
	w.has(c, addonsv1.RolloutCompleted, "True Complete: ")
	w.has(c, addonsv1.SpecsUpToDate, "True UpToDate")
	w.cluster("e")
	w.run()
	w.clustersOn("2", "a", "b", "c", "d", "e")
	var waves []string
	for len(w.events.Events) > 0 {
		if e := <-w.events.Events; strings.Contains(e, "Rollout of revision "+c.Status.Rollout.Revision) {
			waves = append(waves, e[strings.LastIndex(e, " is ")+4:])
		}
	}
	want := []string{"Progressing, wave 1 of 3", "Soaking, wave 1 of 3", "Progressing, wave 2 of 3", "Soaking, wave 2 of 3", "Progressing, wave 3 of 3", "Complete, wave 3 of 3"}
	if diff := cmp.Diff(want, waves); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestFailurePausesTheRollout(t *testing.T) {
	w := fleet(t, func(*addonsv1.Rollout) {})
	w.setReleaseState("a", false)
	c := w.phase(addonsv1.RolloutPaused)
	w.has(c, addonsv1.RolloutCompleted, "False Paused: Wave 1 of 3 is ready on 0 clusters and failed on 1; to resume, change the spec or the value of annotation addons.cluster.x-k8s.io/resume-rollout")
	w.setReleaseState("a", true)
	w.phase(addonsv1.RolloutPaused)
	w.clustersOn("2", "a")
	w.setReleaseState("a", false)
	w.change(func(c *addonsv1.HelmChartProxy) {
		c.Annotations = map[string]string{addonsv1.ResumeRolloutAnnotation: "1"}
	})
	w.run()
	w.clustersOn("2", "a", "b")
	w.setReleaseState("b", false)
	w.phase(addonsv1.RolloutPaused)
	w.clustersOn("2", "a", "b")
	w.quiet()
}

func TestFailureRollsBackToTheLastGoodRevision(t *testing.T) {
	w := fleet(t, func(r *addonsv1.Rollout) { r.OnFailure = "Rollback" })
	w.setReleaseState("a", true)
	w.run()
	w.clustersOn("2", "a", "b")
	w.setReleaseState("b", false)
	w.phase(addonsv1.RolloutRollingBack)
	w.clustersOn("2")
	w.clustersOn("1", "a", "b", "c", "d")
	w.setReleaseState("a", true)
	w.phase(addonsv1.RolloutRollingBack)
	w.setReleaseState("b", true)
	w.phase(addonsv1.RolloutPaused)
	w.cluster("e")
	w.run()
	w.clustersOn("1", "a", "b", "c", "d", "e")
	w.setReleaseState("e", true)
	w.quiet()
	w.version("3")
	w.clustersOn("3", "a")
}

func TestHistoryCanBeRestored(t *testing.T) {
	w := newWorld(t)
	w.cluster("a")
	w.chart(func(c *addonsv1.HelmChartProxy) { c.Spec.Version = "v0" })
	w.run()
	for i := range 12 {
		w.version("v" + string(rune('a'+i)))
	}
	c := w.run()
	all, err := history.List(t.Context(), w.Client, c)
	w.must(err)
	if len(all) != history.Limit || all[0].Spec.Version != "vl" || all[9].Spec.Version != "vc" {
		t.Fatalf("%d revisions, from %s to %s", len(all), all[0].Spec.Version, all[len(all)-1].Spec.Version)
	}
	_, err = history.Restore(t.Context(), w.Client, c, 0)
	w.must(err)
	w.run()
	if got := w.release("a").Spec.Version; got != "vk" {
		t.Errorf("version is %s", got)
	}
	all, err = history.List(t.Context(), w.Client, w.run())
	w.must(err)
	if len(all) != history.Limit || all[0].Spec.Version != "vk" || all[1].Spec.Version != "vl" {
		t.Errorf("after restoring: %s, %s of %d", all[0].Spec.Version, all[1].Spec.Version, len(all))
	}
	if _, err := history.Restore(t.Context(), w.Client, c, 4711); err == nil {
		t.Error("a revision that never was could be restored")
	}
}
