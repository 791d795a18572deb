package progress

import (
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	droverv1 "github.com/drover-dev/drover/api/drover/v1alpha1"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// committed returns a change that was committed at a time.
func committed(at time.Time) *droverv1.GitChange {
	c := &droverv1.GitChange{}
	c.Status.Commit = commit
	c.Status.Conditions = []metav1.Condition{{Type: droverv1.GitCommitted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	return c
}

// fetched returns a repository whose last request was made at a time.
func fetched(revision string, ready metav1.ConditionStatus, request time.Time) *sourcev1.GitRepository {
	r := &sourcev1.GitRepository{}
	r.Status.Artifact = &fluxmeta.Artifact{Revision: revision}
	r.Status.Conditions = []metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: ready}}
	r.Status.LastHandledReconcileAt = request.Format(time.RFC3339Nano)
	return r
}

func TestIsFetched(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const other = "main@sha1:ffffffffffffffffffffffffffffffffffffffff"
	for name, tt := range map[string]struct {
		change *droverv1.GitChange
		source *sourcev1.GitRepository
		want   bool
	}{
		"this commit":                               {committed(at), fetched("main@sha1:"+commit, metav1.ConditionTrue, at.Add(-time.Hour)), true},
		"another commit, requested before":          {committed(at), fetched(other, metav1.ConditionTrue, at.Add(-time.Hour)), false},
		"another commit, requested later":           {committed(at), fetched(other, metav1.ConditionTrue, at.Add(time.Second)), true},
		"requested within the second of the commit": {committed(at), fetched(other, metav1.ConditionTrue, at.Add(999*time.Millisecond)), false},
		"a later request that failed":               {committed(at), fetched(other, metav1.ConditionFalse, at.Add(time.Hour)), false},
		"not committed":                             {&droverv1.GitChange{}, fetched(other, metav1.ConditionTrue, at.Add(time.Hour)), false},
		"nothing fetched":                           {committed(at), &sourcev1.GitRepository{}, false},
	} {
		if got := IsFetched(tt.change, tt.source); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestIsFinished(t *testing.T) {
	for name, tt := range map[string]struct {
		conditions []metav1.Condition
		want       bool
	}{
		"no condition": {nil, false},
		"ready":        {[]metav1.Condition{{Type: droverv1.GitChangeReady, Status: metav1.ConditionTrue}}, true},
		"waiting":      {[]metav1.Condition{{Type: droverv1.GitChangeReady, Status: metav1.ConditionFalse, Reason: droverv1.GitWaitingReason}}, false},
		"superseded":   {[]metav1.Condition{{Type: droverv1.GitChangeReady, Status: metav1.ConditionFalse, Reason: droverv1.GitSupersededReason}}, true},
		"invalid":      {[]metav1.Condition{{Type: droverv1.GitChangeReady, Status: metav1.ConditionFalse, Reason: droverv1.GitInvalidReason}}, true},
	} {
		c := &droverv1.GitChange{}
		c.Status.Conditions = tt.conditions
		if got := IsFinished(c); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestRequestTimeIgnoresOtherTexts(t *testing.T) {
	if got := RequestTime("yesterday"); !got.IsZero() {
		t.Errorf("RequestTime = %s", got)
	}
}
