package helm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/internal/workload/tool"
	obj "github.com/drover-dev/drover/internal/workload/tool/objects"
)

const job = `apiVersion: batch/v1
kind: Job
metadata:
  name: '{{ .Release.Name }}-HOOK'
  annotations: {helm.sh/hook: HOOK, helm.sh/hook-delete-policy: 'POLICY'}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.invalid/job}]}}}
`

func hook(event, policy string) string {
	return strings.NewReplacer("HOOK", event, "POLICY", policy).Replace(job)
}

// end simulates the Job controller for one Job.
func (b *bench) end(t *testing.T, name string, condition batchv1.JobConditionType) {
	t.Helper()
	jobs := b.server.Clientset(t).BatchV1().Jobs(b.namespace)
	w, err := jobs.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Error(err)
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		job, ok := event.Object.(*batchv1.Job)
		if !ok || event.Type == "DELETED" {
			continue
		}
		now := metav1.Now()
		job.Status.StartTime = &now
		before := batchv1.JobFailureTarget
		if condition == batchv1.JobComplete {
			before, job.Status.CompletionTime = batchv1.JobSuccessCriteriaMet, &now
		}
		for _, kind := range []batchv1.JobConditionType{before, condition} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		if _, err := jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
		return
	}
}

func TestHooksRunToCompletion(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{
		"templates/before.yaml": hook("pre-install", "hook-succeeded"), "templates/after.yaml": hook("post-install", "before-hook-creation"),
	})))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.end(t, "web-pre-install", batchv1.JobComplete)
		_, err := b.server.Clientset(t).CoreV1().ConfigMaps(b.namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err == nil {
			t.Error("objects were applied before the hook had ended")
		}
		b.end(t, "web-post-install", batchv1.JobComplete)
	}()
	b.mustApply(t, want)
	<-done
	for name, there := range map[string]bool{"web-pre-install": false, "web-post-install": true} {
		_, err := b.server.Clientset(t).BatchV1().Jobs(b.namespace).Get(t.Context(), name, metav1.GetOptions{})
		if (err == nil) != there {
			t.Errorf("Job %q: error %v, want there: %t", name, err, there)
		}
	}
}

func TestFailedHookFailsTheRevisionAndIsRetried(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{"templates/before.yaml": hook("pre-install", "hook-failed,before-hook-creation")})))
	go b.end(t, "web-pre-install", batchv1.JobFailed)
	_, err := b.Apply(t.Context(), b.cluster, want)
	if err == nil || isTerminal(err) || !strings.Contains(err.Error(), `Job "`+b.namespace+`/web-pre-install" failed`) {
		t.Fatalf("error %v, want one about the Job that can be retried", err)
	}
	if diff := cmp.Diff([]string{"1 failed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	go b.end(t, "web-pre-install", batchv1.JobComplete)
	b.mustApply(t, want)
	if diff := cmp.Diff([]string{"1 deployed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

func TestStalledHookTimesOut(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{"templates/before.yaml": hook("pre-install", "")})))
	want.Options.Timeout = &metav1.Duration{Duration: 200 * time.Millisecond}
	if _, err := b.Apply(t.Context(), b.cluster, want); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want that the time is over", err)
	}
	if diff := cmp.Diff([]string{"1 failed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	want.Options.Timeout = nil
	result := make(chan error)
	go func() {
		_, err := b.Apply(ctx, b.cluster, want)
		result <- err
	}()
	b.until(t, "the revision is pending", func() bool {
		s, _ := b.Observe(b.cluster, want.ID)
		return s.Status == tool.PendingInstall
	})
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that it was canceled", err)
	}
	want.Options.DisableHooks = true
	b.mustApply(t, want)
	if diff := cmp.Diff([]string{"1 deployed"}, b.statuses(t, "web")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
}

func TestUninstallRunsHooksAndMakesOneRequestPerObject(t *testing.T) {
	b := newBench(t)
	b.sync(t)
	want := b.want("web", b.put(t, "1.0.0", with(four, map[string]string{"templates/hook.yaml": hook("pre-delete", "hook-succeeded")})))
	b.observed(t, want, b.mustApply(t, want))
	want.Options.DisableHooks = true
	if _, err := b.Health(t.Context(), b.cluster, want); err != nil { // begins to watch the kinds
		t.Fatal(err)
	}
	b.until(t, "the watches have told all", func() bool {
		for _, r := range []schema.GroupVersionResource{
			{Version: "v1", Resource: "serviceaccounts"},
			{Version: "v1", Resource: "configmaps"},
			{Version: "v1", Resource: "services"},
			{Group: "apps", Version: "v1", Resource: "deployments"},
		} {
			if b.cluster.Follow(watchOf(&object{Object: obj.Object{Resource: r}})).Get(b.namespace, "web") == nil {
				return false
			}
		}
		return true
	})
	b.wire.Restart()
	if err := b.Remove(t.Context(), b.cluster, want); err != nil {
		t.Fatal(err)
	}
	ns := "/api/v1/namespaces/" + b.namespace
	if diff := cmp.Diff([]string{
		"GET " + ns + "/secrets/sh.helm.release.v1.web.v1",
		"PUT " + ns + "/secrets/sh.helm.release.v1.web.v1",
		"DELETE " + ns + "/services/web",
		"DELETE /apis/apps/v1/namespaces/" + b.namespace + "/deployments/web",
		"DELETE " + ns + "/configmaps/web",
		"DELETE " + ns + "/serviceaccounts/web",
		"DELETE " + ns + "/secrets/sh.helm.release.v1.web.v1",
	}, b.wire.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}

	want.Options.DisableHooks = false
	want.ID.Name = "hooked"
	b.observed(t, want, b.mustApply(t, want))
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.end(t, "hooked-pre-delete", batchv1.JobComplete)
	}()
	if err := b.Remove(t.Context(), b.cluster, want); err != nil {
		t.Fatal(err)
	}
	<-done
}
