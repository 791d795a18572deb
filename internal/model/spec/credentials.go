package spec

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// DenyCredentials returns why clusters of a namespace may not use a Secret as credentials for
// machines, or the empty string if they may. Creators of clusters reference Secrets that they can't
// read, in a namespace with other Secrets; therefore an administrator must label those that are
// credentials. Two well-known names need no label.
func DenyCredentials(secret metav1.Object, namespace string) string {
	name := secret.GetName()
	known := name == anywherev1.DefaultPacketCredentials || name == anywherev1.LocalCredentials
	if !known && secret.GetLabels()[anywherev1.CredentialsLabel] != "true" {
		return fmt.Sprintf("Secret %q in namespace %q may not be used for machines; use another one in credentialsRef, or ask an administrator to label it %s=true",
			name, anywherev1.SystemNamespace, anywherev1.CredentialsLabel)
	}
	allowed, limited := secret.GetAnnotations()[anywherev1.CredentialsNamespacesAnnotation]
	if !limited || slices.ContainsFunc(strings.Split(allowed, ","), func(one string) bool { return strings.TrimSpace(one) == namespace }) {
		return ""
	}
	return fmt.Sprintf("Secret %q in namespace %q may not be used by clusters in namespace %q; use another one, or ask an administrator to add the namespace to the annotation %s",
		name, anywherev1.SystemNamespace, namespace, anywherev1.CredentialsNamespacesAnnotation)
}
