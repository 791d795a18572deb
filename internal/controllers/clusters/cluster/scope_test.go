package cluster

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
)

func TestOnlyErrorsThatUsersMustCorrectAreFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome error
		want    *failure
	}{
		"success":              {nil, nil},
		"nothing left to do":   {reconcile.Stop, nil},
		"a deletion waits":     {waitFor("2 machines are being deleted"), nil},
		"an error is retried":  {errors.New("connection refused"), nil},
		"an invalid reference": {fail(anywherev1.ManagementClusterRefInvalidReason, "%s is unknown", "x"), &failure{anywherev1.ManagementClusterRefInvalidReason, "x is unknown"}},
		"a rejected object":    {fmt.Errorf("applying objects: %w", &rejectedError{errors.New("too many")}), &failure{anywherev1.ClusterInvalidReason, "too many"}},
	} {
		got := failureOf(tc.outcome)
		if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
			t.Errorf("%s: failure %v, want %v", name, got, tc.want)
		}
	}
}

func TestRejectedObjectsAreRetried(t *testing.T) {
	err := fmt.Errorf("applying objects: %w", &rejectedError{errors.New("too many")})
	if _, retried := reconcile.Result(err, 0); retried == nil {
		t.Error("a rejected object is not retried")
	}
	if _, retried := reconcile.Result(fail(anywherev1.ClusterInvalidReason, "wrong"), 0); retried != nil {
		t.Errorf("an invalid spec is retried: %v", retried)
	}
}

func TestPausedClustersAreSkipped(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		annotations map[string]string
		deleted     bool
		want        bool
	}{
		"not paused":                     {nil, false, false},
		"paused":                         {map[string]string{anywherev1.PausedAnnotation: "true"}, false, true},
		"deleted":                        {nil, true, false},
		"paused and deleted":             {map[string]string{anywherev1.PausedAnnotation: "true"}, true, true},
		"paused, deletion is allowed":    {map[string]string{anywherev1.PausedAnnotation: "true", anywherev1.AllowDeleteWhenPausedAnnotation: "true"}, true, false},
		"paused, deletion would be fine": {map[string]string{anywherev1.PausedAnnotation: "true", anywherev1.AllowDeleteWhenPausedAnnotation: "true"}, false, true},
	} {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
		if tc.deleted {
			c.DeletionTimestamp = &now
		}
		if got := paused(c); got != tc.want {
			t.Errorf("%s: skipped %v, want %v", name, got, tc.want)
		}
	}
}
