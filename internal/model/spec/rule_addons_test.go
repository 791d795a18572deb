package spec

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestAddOnWaitAnnotations(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		rejected    bool
	}{
		{anywherev1.SkipAddOnWaitAnnotation, "1.36", false},
		{anywherev1.SkipAddOnWaitAnnotation, "v1.36.3", false},
		{anywherev1.SkipAddOnWaitAnnotation, "true", true},
		{anywherev1.SkipAddOnWaitAnnotation, "", true},
		{anywherev1.AddOnWaitTimeoutAnnotation, "45m", false},
		{anywherev1.AddOnWaitTimeoutAnnotation, "45", true},
		{anywherev1.AddOnWaitTimeoutAnnotation, "-1m", true},
		{anywherev1.AddOnWaitTimeoutAnnotation, "", true},
	} {
		c := &anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tc.name: tc.value}}}
		if problems := addOnWaitRule(c); (len(problems) > 0) != tc.rejected {
			t.Errorf("%s: %q: %v", tc.name, tc.value, problems)
		}
	}
}
