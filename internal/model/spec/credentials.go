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
//
// Root on a local machine may become root on its host. Therefore, local machines are available to a
// namespace only if the annotation lists it, or if it is for administrators; see
// [ForAdministrators].
func DenyCredentials(secret metav1.Object, namespace string) string {
	name := secret.GetName()
	known := name == anywherev1.DefaultPacketCredentials || name == anywherev1.LocalCredentials
	if !known && secret.GetLabels()[anywherev1.CredentialsLabel] != "true" {
		return fmt.Sprintf("Secret %q in namespace %q may not be used for machines; use another one in credentialsRef, or ask an administrator to label it %s=true",
			name, anywherev1.SystemNamespace, anywherev1.CredentialsLabel)
	}
	_, limited := secret.GetAnnotations()[anywherev1.CredentialsNamespacesAnnotation]
	switch {
	case listsNamespace(secret, namespace):
		return ""
	case name != anywherev1.LocalCredentials && !limited:
		return ""
	case name == anywherev1.LocalCredentials && slices.Contains(administratorNamespaces(), namespace):
		return ""
	}
	return fmt.Sprintf("Secret %q in namespace %q may not be used by clusters in namespace %q; use another one, or ask an administrator to add the namespace to the annotation %s",
		name, anywherev1.SystemNamespace, namespace, anywherev1.CredentialsNamespacesAnnotation)
}

// ForAdministrators reports whether only administrators may use a Secret as credentials for
// machines in a namespace: it is the one of local machines, and no annotation lists the namespace.
func ForAdministrators(secret metav1.Object, namespace string) bool {
	return secret.GetName() == anywherev1.LocalCredentials && !listsNamespace(secret, namespace)
}

// administratorNamespaces are the namespaces in which administrators use local machines without
// preparation.
func administratorNamespaces() []string {
	return []string{metav1.NamespaceDefault, anywherev1.SystemNamespace}
}

// listsNamespace reports whether an administrator listed the namespace, or all.
func listsNamespace(secret metav1.Object, namespace string) bool {
	return slices.ContainsFunc(listedNamespaces(secret), func(one string) bool { return one == namespace || one == anywherev1.AllNamespaces })
}

func listedNamespaces(secret metav1.Object) []string {
	return listed(secret, anywherev1.CredentialsNamespacesAnnotation)
}

// AddNamespace adds a namespace to those that may use a Secret, and reports whether it was missing.
func AddNamespace(secret *metav1.ObjectMeta, namespace string) bool {
	if listsNamespace(secret, namespace) {
		return false
	}
	all := strings.Join(append(listedNamespaces(secret), namespace), ",")
	metav1.SetMetaDataAnnotation(secret, anywherev1.CredentialsNamespacesAnnotation, all)
	return true
}
