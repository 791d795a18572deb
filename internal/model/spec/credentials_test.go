package spec_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

func TestDenyCredentials(t *testing.T) {
	marked := map[string]string{anywherev1.CredentialsLabel: "true"}
	limited := func(to string) map[string]string {
		return map[string]string{anywherev1.CredentialsNamespacesAnnotation: to}
	}
	for name, tc := range map[string]struct {
		secret metav1.ObjectMeta
		want   string
	}{
		"marked":                        {metav1.ObjectMeta{Name: "metro", Labels: marked}, ""},
		"not marked":                    {metav1.ObjectMeta{Name: "one-kubeconfig"}, "label it clusters.anywhere.eks.amazonaws.com/credentials=true"},
		"marked otherwise":              {metav1.ObjectMeta{Name: "metro", Labels: map[string]string{anywherev1.CredentialsLabel: "false"}}, "may not be used for machines"},
		"for the namespace":             {metav1.ObjectMeta{Name: "metro", Labels: marked, Annotations: limited("team-b, team-a")}, ""},
		"for others":                    {metav1.ObjectMeta{Name: "metro", Labels: marked, Annotations: limited("team-b,team-aa")}, `may not be used by clusters in namespace "team-a"`},
		"for no namespace":              {metav1.ObjectMeta{Name: "metro", Labels: marked, Annotations: limited("")}, "ask an administrator to add the namespace"},
		"for the namespace, not marked": {metav1.ObjectMeta{Name: "metro", Annotations: limited("team-a")}, "may not be used for machines"},
		"the default":                   {metav1.ObjectMeta{Name: anywherev1.DefaultPacketCredentials}, ""},
		"the default, for others":       {metav1.ObjectMeta{Name: anywherev1.DefaultPacketCredentials, Annotations: limited("team-b")}, "may not be used by clusters in namespace"},
		"those of this host":            {metav1.ObjectMeta{Name: anywherev1.LocalCredentials}, ""},
	} {
		got := spec.DenyCredentials(&tc.secret, "team-a")
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
