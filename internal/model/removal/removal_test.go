package removal

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestWaits(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status}
	}
	for name, tt := range map[string]struct {
		conditions []metav1.Condition
		removal    string
		deleting   bool
		want       bool
	}{
		"a new cluster":              {},
		"a cluster that never began": {conditions: []metav1.Condition{is(anywherev1.Ready, metav1.ConditionFalse)}},
		"a ready cluster":            {conditions: []metav1.Condition{is(anywherev1.Ready, metav1.ConditionTrue)}, want: true},
		"a cluster that was ready": {
			conditions: []metav1.Condition{is(anywherev1.Ready, metav1.ConditionFalse), is(anywherev1.ControlPlaneInitialized, metav1.ConditionTrue)}, want: true,
		},
		"a confirmed removal":        {conditions: []metav1.Condition{is(anywherev1.Ready, metav1.ConditionTrue)}, removal: "confirmed"},
		"any other annotation":       {conditions: []metav1.Condition{is(anywherev1.Ready, metav1.ConditionTrue)}, removal: "true", want: true},
		"a cluster that is deleting": {conditions: []metav1.Condition{is(anywherev1.Ready, metav1.ConditionTrue)}, deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &anywherev1.Cluster{Status: anywherev1.ClusterStatus{Conditions: tt.conditions}}
			c.Annotations = map[string]string{anywherev1.GitRemovalAnnotation: tt.removal}
			if tt.deleting {
				c.DeletionTimestamp = &metav1.Time{}
				c.DeletionTimestamp.Time = c.DeletionTimestamp.AddDate(2026, 0, 0)
			}
			if got := Waits(c); got != tt.want {
				t.Errorf("Waits = %t", got)
			}
		})
	}
}

func TestIsFlux(t *testing.T) {
	for user, want := range map[string]bool{
		"system:serviceaccount:team-a:drover-gitops":             true,
		"system:serviceaccount:flux-system:kustomize-controller": true,
		"system:serviceaccount:team-a:default":                   false,
		"drover-gitops":                                          false,
		"team-a:drover-gitops":                                   false,
	} {
		if got := IsFlux(user); got != want {
			t.Errorf("IsFlux(%q) = %t", user, got)
		}
	}
}
