package clusters_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/test/managertest"
)

// limit lets metal provide at most so many machines.
func (w *world) limit(machines int) {
	w.Helper()
	body := fmt.Sprintf(`{"limits": [{"devices": %d}]}`, machines)
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPut, w.metal.URL+"/drover/v1/capacity", bytes.NewReader([]byte(body)))
	w.must(err)
	request.Header.Set("X-Auth-Token", w.metal.Admin)
	response, err := http.DefaultClient.Do(request)
	w.must(err)
	w.must(response.Body.Close())
	if response.StatusCode != http.StatusOK {
		w.Fatalf("limiting machines: %s", response.Status)
	}
}

// waits waits until a cluster waits for machines, and returns the message.
func (w *world) waits(name string) (message string) {
	w.Helper()
	w.until(name+" waits for machines", func() error {
		c := meta.FindStatusCondition(w.cluster(name).Status.Conditions, anywherev1.CapacityReserved)
		if c == nil || c.Reason != anywherev1.WaitingForCapacityReason {
			return fmt.Errorf("condition %v", c)
		}
		message = c.Message
		return nil
	})
	return message
}

// proceeds waits until the objects of a cluster are created.
func (w *world) proceeds(name string) {
	w.Helper()
	w.until(name+" proceeds", func() error {
		return w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, &clusterv1.Cluster{})
	})
}

func (w *world) hasNoObjects(name string) {
	w.Helper()
	err := w.Get(w.Context(), client.ObjectKey{Namespace: anywherev1.SystemNamespace, Name: name}, &clusterv1.Cluster{})
	if !apierrors.IsNotFound(err) {
		w.Errorf("%s got machines although an older cluster waits: %v", name, err)
	}
}

// createAs creates a cluster as the user, without the checks of a command.
func (w *world) createAs(manifests string) {
	w.Helper()
	for _, text := range strings.Split(manifests, "\n---\n") {
		o := &unstructured.Unstructured{}
		w.must(yaml.Unmarshal([]byte(text), &o.Object))
		o.SetNamespace(w.ns)
		w.must(w.user.Create(w.Context(), o))
	}
}

// checkQuota checks that a quota holds for its namespace, and that users see it but can't change
// it.
func (w *world) checkQuota() {
	w.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "clusters"}}
	quota.Spec.Hard = corev1.ResourceList{"drover.dev/machines": resource.MustParse("1"), "drover.dev/clusters": resource.MustParse("5")}
	w.must(w.Create(w.Context(), quota))
	const want = "exceeded quota of the namespace: machines: 2 of 1"
	if out, code := w.tryDrover("create", "cluster", "-f", w.spec(named("beyond"))); code == 0 || !strings.Contains(out, want) {
		w.Errorf("creating a cluster beyond the quota ended with %d:\n%s", code, out)
	}
	if out, code := w.tryDrover("get", "quotas", "-n", w.ns); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "drover.dev/machines 0 1 ") {
		w.Errorf("showing quotas ended with %d:\n%s", code, out)
	}
	if err := w.user.Delete(w.Context(), quota); !apierrors.IsForbidden(err) {
		w.Errorf("a user deletes a quota: %v", err)
	}
	w.must(w.Delete(w.Context(), quota))
}

// TestClustersWaitForMachinesOldestFirst has room for one cluster at a time.
func TestClustersWaitForMachinesOldestFirst(t *testing.T) {
	w := newWorld(t, managertest.Command)
	t.Chdir(t.TempDir())
	w.checkQuota()
	w.limit(3)
	w.drover("create", "cluster", "-f", w.spec(named("first")))
	w.ready("first", "1/1", "1/1")

	const missing = "not enough machines: 2 of plan local.small in da needed"
	out, code := w.tryDrover("create", "cluster", "-f", w.spec(named("second")))
	if code == 0 || !strings.Contains(out, missing) || !strings.Contains(out, "--skip-validations=capacity") {
		t.Errorf("creating a cluster without machines for it ended with %d:\n%s", code, out)
	}
	out, code = w.tryDrover("upgrade", "cluster", "-f", w.spec(named("first"), "{name: md-0, count: 1}", "{name: md-0, count: 3}"))
	if code == 0 || !strings.Contains(out, missing) {
		t.Errorf("scaling a cluster without machines for it ended with %d:\n%s", code, out)
	}
	w.drover("upgrade", "cluster", "-f", w.spec(named("first"), `"1.35"`, `"1.36"`)) // One spare machine is enough.
	w.ready("first", "1/1", "1/1")

	w.createAs(named("second"))
	if got := w.waits("second"); got != "Waiting for machines: 2 of plan local.small in da are not available" {
		t.Errorf("message: %s", got)
	}
	w.until("the next cluster is younger", func() error {
		if created := w.cluster("second").CreationTimestamp; time.Since(created.Time) < time.Second {
			return fmt.Errorf("created at %s", created)
		}
		return nil
	})
	w.createAs(named("third"))
	if got := w.waits("third"); !strings.Contains(got, "older clusters come first") || strings.Contains(got, "second") {
		t.Errorf("message: %s", got)
	}
	w.quiet()

	w.drover("delete", "cluster", "first", "-n", w.ns, "--yes")
	w.proceeds("second")
	w.waits("third")
	w.hasNoObjects("third")
	w.drover("delete", "cluster", "second", "-n", w.ns, "--yes")
	w.ready("third", "1/1", "1/1")
	if c := meta.FindStatusCondition(w.cluster("third").Status.Conditions, anywherev1.CapacityReserved); c != nil {
		t.Errorf("a cluster that is ready waits for %s", c.Message)
	}
	w.drover("delete", "cluster", "third", "-n", w.ns, "--yes")
	w.awaitDeletion("third")
}
