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
		"for all":                       {metav1.ObjectMeta{Name: "metro", Labels: marked, Annotations: limited("*")}, ""},
		"this host's":                   {metav1.ObjectMeta{Name: anywherev1.LocalCredentials, Labels: marked}, "may not be used by clusters in namespace"},
		"this host's, for others":       {metav1.ObjectMeta{Name: anywherev1.LocalCredentials, Annotations: limited("team-b")}, "ask an administrator to add the namespace"},
		"this host's, opened":           {metav1.ObjectMeta{Name: anywherev1.LocalCredentials, Annotations: limited("team-b,team-a")}, ""},
		"this host's, opened to all":    {metav1.ObjectMeta{Name: anywherev1.LocalCredentials, Annotations: limited("*")}, ""},
	} {
		got := spec.DenyCredentials(&tc.secret, "team-a")
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestLocalMachinesOfAdministrators(t *testing.T) {
	secret := metav1.ObjectMeta{Name: anywherev1.LocalCredentials}
	for _, namespace := range []string{"default", anywherev1.SystemNamespace} {
		if problem := spec.DenyCredentials(&secret, namespace); problem != "" || !spec.ForAdministrators(&secret, namespace) {
			t.Errorf("%s: denied with %q, or open to everyone", namespace, problem)
		}
	}
	other := metav1.ObjectMeta{Name: anywherev1.DefaultPacketCredentials}
	if spec.ForAdministrators(&other, "default") {
		t.Error("credentials of servers are limited to administrators")
	}
	for _, namespace := range []string{"team-a", "default"} {
		if !spec.AddNamespace(&secret, namespace) || spec.AddNamespace(&secret, namespace) {
			t.Errorf("%s was not added exactly once", namespace)
		}
		if problem := spec.DenyCredentials(&secret, namespace); problem != "" || spec.ForAdministrators(&secret, namespace) {
			t.Errorf("%s: denied with %q, or still limited to administrators", namespace, problem)
		}
	}
	if got := secret.Annotations[anywherev1.CredentialsNamespacesAnnotation]; got != "team-a,default" {
		t.Errorf("the list is %q", got)
	}
}
