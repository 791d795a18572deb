package spec

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// RefuseCredentials says why clusters of a namespace may not have machines with what is in a Secret; it is empty if they may. Who makes a
// cluster names the Secret without being able to read it, and there are others beside it: what it is for is up to an administrator. Two names
// say by themselves what they are for.
func RefuseCredentials(secret metav1.Object, namespace string) string {
	name := secret.GetName()
	known := name == anywherev1.DefaultPacketCredentials || name == anywherev1.LocalCredentials
	if !known && secret.GetLabels()[anywherev1.CredentialsLabel] != "true" {
		return fmt.Sprintf("Secret %q in namespace %q is not meant for machines: name another one in credentialsRef, or have an administrator label it %s=true",
			name, anywherev1.SystemNamespace, anywherev1.CredentialsLabel)
	}
	allowed, limited := secret.GetAnnotations()[anywherev1.CredentialsNamespacesAnnotation]
	if !limited || slices.ContainsFunc(strings.Split(allowed, ","), func(one string) bool { return strings.TrimSpace(one) == namespace }) {
		return ""
	}
	return fmt.Sprintf("Secret %q in namespace %q is not meant for clusters of namespace %q: use another one, or have an administrator add the namespace to its annotation %s",
		name, anywherev1.SystemNamespace, namespace, anywherev1.CredentialsNamespacesAnnotation)
}
