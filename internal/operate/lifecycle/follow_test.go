package lifecycle

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/operate/inspect"
)

func TestActivityNamesTheMachineInProgress(t *testing.T) {
	tests := map[string]struct {
		doing                 string
		controlPlane, workers string
		want                  string
	}{
		"nothing is known yet":        {creating, "", "", "Creating control plane machine 1/3"},
		"the first is in progress":    {creating, "0/3", "0/2", "Creating control plane machine 1/3"},
		"the last is in progress":     {creating, "2/3", "0/2", "Creating control plane machine 3/3"},
		"workers come afterwards":     {creating, "3/3", "1/2", "Creating worker machine 2/2"},
		"all machines are ready":      {creating, "3/3", "2/2", "Creating cluster one"},
		"an upgrade":                  {upgrading, "3/3", "1/2", "Upgrading worker machine 2/2"},
		"a cluster that manages":      {waitingFor, "2/3", "2/2", "Waiting for control plane machine 3/3"},
		"a deletion names no machine": {deleting, "1/3", "0/2", "Deleting cluster one"},
		"a status that is not one":    {creating, "many", "2/2", "Creating control plane machine 1/3"},
	}
	for name, tt := range tests {
		c := clusterOf(3, map[string]int{"a": 2}).Cluster
		c.Status.ControlPlane, c.Status.Workers = tt.controlPlane, tt.workers
		if got := activity(tt.doing, c); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	external := clusterOf(1, nil).Cluster
	external.Spec.ExternalEtcdConfiguration = &anywherev1.ExternalEtcdConfiguration{Count: 3}
	if got := activity(creating, external); got != "Creating etcd" {
		t.Errorf("external etcd: %q", got)
	}
	external.Status.Conditions = []metav1.Condition{{Type: anywherev1.EtcdReady, Status: metav1.ConditionTrue}}
	if got := activity(creating, external); got != "Creating control plane machine 1/1" {
		t.Errorf("after external etcd: %q", got)
	}
	if got := activity(creating, clusterOf(1, nil).Cluster); got != "Creating control plane machine 1/1" {
		t.Errorf("without workers: %q", got)
	}
	alone := clusterOf(1, nil).Cluster
	alone.Status.ControlPlane = "1/1"
	if got := activity(creating, alone); got != "Creating cluster one" {
		t.Errorf("without workers, ready: %q", got)
	}
}

func TestWorkerTimeoutGrowsWithTheWorkers(t *testing.T) {
	limits := Limits{ControlPlane: time.Hour, Machine: 10 * time.Minute}
	for workers, want := range map[int]time.Duration{0: 90 * time.Minute, 3: 90 * time.Minute, 12: 3 * time.Hour} {
		if got := workerTimeout(clusterOf(1, map[string]int{"a": workers}).Cluster, limits); got != want {
			t.Errorf("%d workers: got %s, want %s", workers, got, want)
		}
	}
	if got := workerTimeout(clusterOf(1, nil).Cluster, Limits{}); got != 0 {
		t.Errorf("without timeouts: got %s, want none", got)
	}
}

func TestTimeoutNamesTheLastKnownCause(t *testing.T) {
	f := &follower{key: client.ObjectKey{Name: "one"}}
	if got, want := f.timedOut(time.Hour).Error(), "timed out after 1h0m0s waiting for cluster \"one\": the cause is unknown\nTry: drover why cluster one"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	f.deepest, f.next = inspect.Link{Kind: "Machine", Name: "one-x", Condition: "Ready", Message: "no server is free"}, "free a server"
	if got := f.timedOut(time.Minute).Error(); !strings.Contains(got, "no server is free") || !strings.HasSuffix(got, "\nTry: free a server") {
		t.Errorf("error %q", got)
	}
}

func TestFailureCountsOnceItLasts(t *testing.T) {
	f, c := &follower{}, &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one", Generation: 1}}
	c.Status.ObservedGeneration, c.Status.FailureMessage = 1, ptr.To("no such machine type")
	if err := f.failed(c); err != nil {
		t.Errorf("a failure counts at once: %v", err)
	}
	f.failing = time.Now().Add(-2 * failureGrace)
	var failed *FailedError
	if err := f.failed(c); !errors.As(err, &failed) || failed.Problem != "no such machine type" {
		t.Errorf("lasting failure: got error %v", err)
	}
	c.Generation = 2
	if err := f.failed(c); err != nil || !f.failing.IsZero() {
		t.Errorf("a failure of an earlier spec: %v", err)
	}
}

func TestPreflightErrorListsEveryProblem(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	if got := (&PreflightError{Problems: []error{first}}).Error(); got != "first" {
		t.Errorf("one problem: %q", got)
	}
	both := &PreflightError{Problems: []error{first, second}}
	if got, want := both.Error(), "2 preflight checks failed:\n  - first\n  - second"; got != want {
		t.Errorf("two problems: got %q, want %q", got, want)
	}
	if !errors.Is(both, second) {
		t.Error("a caller can't match the second problem")
	}
}

func TestRejectionOmitsTheTextOfTheServer(t *testing.T) {
	resource := anywherev1.GroupVersion.WithResource("clusters").GroupResource()
	denied := apierrors.NewForbidden(resource, "one", errors.New(`admission webhook "x" denied the request: count must be odd`))
	if got, want := rejected("Cluster", "one", denied).Error(), `Cluster "one" was rejected: count must be odd`; got != want {
		t.Errorf("a webhook: got %q, want %q", got, want)
	}
	other := errors.New("connection reset")
	if err := rejected("Cluster", "one", other); !errors.Is(err, other) || !strings.HasPrefix(err.Error(), `applying Cluster "one": `) {
		t.Errorf("another error: %v", err)
	}
}
