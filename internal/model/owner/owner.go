// Package owner determines which Cluster an object belongs to. Objects carry the UID of their
// Cluster, because names and labels are the same again after a Cluster was deleted and another one
// of its name was created.
//
// It contains only pure functions. Start with Owns; Shares relates two objects when the Cluster
// itself is not at hand.
package owner

import (
	"cmp"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// UID returns the UID that identifies a Cluster, or the Cluster that one of Cluster API was created
// for. It stays the same when the Cluster is moved to another management plane.
func UID(c metav1.Object) string {
	return cmp.Or(c.GetAnnotations()[anywherev1.ClusterUIDAnnotation], string(c.GetUID()))
}

// Identifies reports whether a UID that was recorded earlier is that of a Cluster. It may have been
// recorded before the Cluster was marked.
func Identifies(c metav1.Object, uid string) bool {
	return uid == UID(c) || uid == string(c.GetUID())
}

// Labels returns the labels that lead from an object to its Cluster. They are not proof that the
// object belongs to it.
func Labels(c metav1.Object) map[string]string {
	return map[string]string{anywherev1.ClusterNameLabel: c.GetName(), anywherev1.ClusterNamespaceLabel: c.GetNamespace()}
}

// Mark records on an object that it belongs to a Cluster.
func Mark(c *anywherev1.Cluster, o metav1.Object) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[anywherev1.ClusterUIDAnnotation] = UID(c)
	if IsAdministered(c) {
		annotations[anywherev1.AdministeredAnnotation] = "true"
	}
	o.SetAnnotations(annotations)
}

// Copy marks an object as belonging to the Cluster of another object, if that belongs to one.
func Copy(from, to metav1.Object) {
	to.SetLabels(merged(to.GetLabels(), from.GetLabels(), anywherev1.ClusterNameLabel, anywherev1.ClusterNamespaceLabel))
	to.SetAnnotations(merged(to.GetAnnotations(), from.GetAnnotations(), anywherev1.ClusterUIDAnnotation, anywherev1.AdministeredAnnotation))
}

// merged returns a map with some values of another one.
func merged(to, from map[string]string, keys ...string) map[string]string {
	out := maps.Clone(to)
	for _, key := range keys {
		if value, ok := from[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// IsAdministered reports whether a Cluster belongs to administrators: one of them created it, or it
// is a management cluster.
func IsAdministered(c *anywherev1.Cluster) bool {
	return c.IsSelfManaged() || c.Annotations[anywherev1.AdministeredAnnotation] == "true"
}

// Owns reports whether an object belongs to a Cluster. Earlier versions of Drover did not mark
// objects: an unmarked one with the labels belongs to the Cluster if it is not older, because then
// no former Cluster of the name can have had it. A move recreates objects in any order, but only
// administrators move Clusters.
func Owns(c *anywherev1.Cluster, o metav1.Object) bool {
	if uid := o.GetAnnotations()[anywherev1.ClusterUIDAnnotation]; uid != "" {
		return uid == UID(c)
	}
	moved := UID(c) != string(c.UID)
	return Labeled(c, o) && (moved || !Older(o, c))
}

// Labeled reports whether an object has the labels of a Cluster.
func Labeled(c, o metav1.Object) bool {
	for key, value := range Labels(c) {
		if o.GetLabels()[key] != value {
			return false
		}
	}
	return true
}

// Users returns the namespace of the users that an object in a namespace of the system belongs to.
// It is empty if the object belongs to administrators or to no Cluster.
func Users(o metav1.Object) string {
	namespace := o.GetLabels()[anywherev1.ClusterNamespaceLabel]
	if namespace == anywherev1.SystemNamespace || o.GetAnnotations()[anywherev1.AdministeredAnnotation] == "true" {
		return ""
	}
	return namespace
}

// Shares reports whether an object belongs to the same Cluster as the Cluster of Cluster API that
// Drover created for it. Unmarked objects are judged as by Owns.
func Shares(root, o metav1.Object) bool {
	if uid := o.GetAnnotations()[anywherev1.ClusterUIDAnnotation]; uid != "" {
		return Identifies(root, uid)
	}
	for _, key := range []string{anywherev1.ClusterNameLabel, anywherev1.ClusterNamespaceLabel} {
		if o.GetLabels()[key] == "" || o.GetLabels()[key] != root.GetLabels()[key] {
			return false
		}
	}
	return !Older(o, root)
}

// MayUse reports whether a Cluster of Cluster API may use an object that was prepared for a cluster
// of its name: both belong to the same Cluster, or both to administrators.
func MayUse(root, o metav1.Object) bool {
	return Shares(root, o) || Users(root) == "" && Users(o) == ""
}

// Older reports whether a was created before b.
func Older(a, b metav1.Object) bool {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return at.Before(&bt)
}
