package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
)

func TestMayBeAbandoned(t *testing.T) {
	requested := map[string]string{packagesv1.AbandonAnnotation: "true"}
	for _, tc := range []struct {
		name        string
		installed   metav1.ConditionStatus
		after       time.Duration
		annotations map[string]string
		want        bool
	}{
		{"unreachable for too long", metav1.ConditionUnknown, giveUpAfter, nil, true},
		{"unreachable for a while", metav1.ConditionUnknown, giveUpAfter - time.Second, nil, false},
		{"unreachable, requested by the user", metav1.ConditionUnknown, 0, requested, true},
		{"reachable", metav1.ConditionFalse, giveUpAfter, requested, false},
		{"never installed", "", giveUpAfter, requested, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &packagesv1.Package{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			p.Status.Target = &packagesv1.PackageTarget{}
			if tc.installed != "" {
				meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: packagesv1.Installed, Status: tc.installed})
			}
			if got := mayBeAbandoned(p, tc.after); got != tc.want {
				t.Errorf("got %t", got)
			}
			if p.Status.Target = nil; mayBeAbandoned(p, tc.after) {
				t.Error("a release without a target was abandoned")
			}
		})
	}
}

func TestRemovalIsRecorded(t *testing.T) {
	to := &packagesv1.PackageTarget{Cluster: "dev", Release: "my", Namespace: "x"}
	for _, tc := range []struct {
		name      string
		target    *packagesv1.PackageTarget
		abandoned bool
		want      string
	}{
		{"nothing installed", nil, false, "Normal PackageUninstalled Nothing was installed"},
		{"uninstalled", to, false, `Normal PackageUninstalled Uninstalled release "my" from Cluster "dev", or the Cluster was deleted`},
		{"abandoned", to, true, `Warning PackageAbandoned Abandoned release "my" in namespace "x" because Cluster "dev" was unreachable`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			events := record.NewFakeRecorder(1)
			c := &Controller{Events: events}
			c.recordRemoval(&facts{pack: &packagesv1.Package{Status: packagesv1.PackageStatus{Target: tc.target}}, abandoned: tc.abandoned})
			if diff := cmp.Diff(tc.want, <-events.Events); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNewProblem(t *testing.T) {
	status := func(kind string, s metav1.ConditionStatus, reason, message string) *packagesv1.PackageStatus {
		return &packagesv1.PackageStatus{Conditions: []metav1.Condition{{Type: kind, Status: s, Reason: reason, Message: message}}}
	}
	none := &packagesv1.PackageStatus{}
	source := status(packagesv1.SourceFound, "False", "NotInBundle", "not there")
	for _, tc := range []struct {
		name    string
		was, is *packagesv1.PackageStatus
		kind    string
		want    string
	}{
		{"new", none, source, packagesv1.SourceFound, "not there"},
		{"unchanged", source, source, packagesv1.SourceFound, ""},
		{"another message", status(packagesv1.SourceFound, "False", "NotInBundle", "other"), source, packagesv1.SourceFound, "not there"},
		{"solved", source, status(packagesv1.SourceFound, "True", "Found", "found"), packagesv1.SourceFound, ""},
		{"progress", none, status(packagesv1.Installed, "False", packagesv1.InstallingReason, "1 of 2 pods"), packagesv1.Installed, ""},
		{"failure", none, status(packagesv1.Installed, "False", packagesv1.InstallFailedReason, "no pod"), packagesv1.Installed, "no pod"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := newProblem(tc.was, tc.is, tc.kind); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
