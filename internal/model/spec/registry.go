package spec

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// DenyRegistry returns why clusters of a namespace may not send registry credentials to an
// endpoint, or the empty string if they may. Creators name the endpoint and are root on the
// machines that get the credentials; therefore an administrator must set both on the Secret.
func DenyRegistry(secret metav1.Object, namespace, endpoint string) string {
	if problem := DenyNamespace(secret, namespace); problem != "" {
		return problem
	}
	if listsEndpoint(secret, endpoint) {
		return ""
	}
	return fmt.Sprintf("Secret %q in namespace %q may not be sent to %q; ask an administrator to add the endpoint to the annotation %s",
		secret.GetName(), secret.GetNamespace(), endpoint, anywherev1.CredentialsEndpointsAnnotation)
}

func listsEndpoint(secret metav1.Object, endpoint string) bool {
	return slices.ContainsFunc(listed(secret, anywherev1.CredentialsEndpointsAnnotation), func(one string) bool { return Host(one) == Host(endpoint) })
}

// AddEndpoint adds an endpoint to those that registry credentials may be sent to, and reports
// whether it was missing.
func AddEndpoint(secret *metav1.ObjectMeta, endpoint string) bool {
	if listsEndpoint(secret, endpoint) {
		return false
	}
	all := strings.Join(append(listed(secret, anywherev1.CredentialsEndpointsAnnotation), endpoint), ",")
	metav1.SetMetaDataAnnotation(secret, anywherev1.CredentialsEndpointsAnnotation, all)
	return true
}

// DenyNamespace returns why clusters of a namespace may not use shared registry credentials, or the
// empty string if they may. Without the annotation, none may.
func DenyNamespace(secret metav1.Object, namespace string) string {
	if listsNamespace(secret, namespace) {
		return ""
	}
	return fmt.Sprintf("Secret %q in namespace %q may not be used by clusters in namespace %q; ask an administrator to add the namespace to the annotation %s",
		secret.GetName(), secret.GetNamespace(), namespace, anywherev1.CredentialsNamespacesAnnotation)
}

// IsBound reports whether an administrator has bound shared registry credentials to namespaces.
func IsBound(secret metav1.Object) bool {
	return len(listedNamespaces(secret)) > 0
}

// listed returns the elements of an annotation, without empty ones.
func listed(secret metav1.Object, annotation string) []string {
	var out []string
	for one := range strings.SplitSeq(secret.GetAnnotations()[annotation], ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

// Host returns the host of a registry's address in lower case, with the port unless that is 443.
func Host(address string) string {
	if _, rest, found := strings.Cut(address, "://"); found {
		address = rest
	}
	host, _, _ := strings.Cut(address, "/")
	return strings.TrimSuffix(strings.ToLower(host), ":443")
}
