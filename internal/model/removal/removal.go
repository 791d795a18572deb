// Package removal determines whether a Cluster whose files were removed from Git may be deleted. A
// directory that disappears may be a bad merge, so that somebody must confirm the deletion of a
// cluster that is or was in use.
//
// It contains only pure functions, which the webhook of Clusters and the controller of fleets
// share.
package removal

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
)

// Confirmed is the value of anywherev1.GitRemovalAnnotation that confirms a removal.
const Confirmed = "confirmed"

// IsConfirmed reports whether somebody has confirmed that a Cluster is to be deleted.
func IsConfirmed(c *anywherev1.Cluster) bool {
	return c.Annotations[anywherev1.GitRemovalAnnotation] == Confirmed
}

// Waits reports whether a Cluster must not be deleted before somebody confirms it. A cluster whose
// control plane has never been available holds nothing that could be lost. One that is not ready at
// the moment is still in use.
func Waits(c *anywherev1.Cluster) bool {
	used := meta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.Ready) ||
		meta.IsStatusConditionTrue(c.Status.Conditions, anywherev1.ControlPlaneInitialized)
	return used && c.DeletionTimestamp.IsZero() && !IsConfirmed(c)
}

// Message tells how to confirm the removal of a Cluster.
func Message(c *anywherev1.Cluster) string {
	return fmt.Sprintf("Cluster %q is in use, but its files were removed from Git: run `drover gitops confirm %s -n %s` to delete it, or restore the files",
		c.Name, c.Name, c.Namespace)
}

// IsFlux reports whether a user is an account with which Flux applies repositories.
func IsFlux(user string) bool {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	_, name, _ := strings.Cut(account, ":")
	return ok && (name == anywherev1.GitAccount || name == config.FluxKustomize)
}
