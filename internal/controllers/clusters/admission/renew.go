package admission

import (
	"time"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// maxAhead is how far the clock of a user may be ahead.
const maxAhead = time.Minute

// renewable rejects requests for new certificates that can't be fulfilled.
func (r *clusterRules) renewable(was, is *anywherev1.Cluster) error {
	for _, key := range []string{anywherev1.RenewControlPlaneAnnotation, anywherev1.RenewEtcdAnnotation} {
		value := is.Annotations[key]
		if value == "" || was != nil && was.Annotations[key] == value {
			continue
		}
		at, err := time.Parse(time.RFC3339, value)
		switch {
		case err != nil:
			return invalid("metadata.annotations: " + key + " must be a time such as 2026-05-01T12:00:00Z")
		case at.After(r.now().Add(maxAhead)):
			return rejection("metadata.annotations: the time in %s is in the future; correct the clock of the machine that requests new certificates", key)
		case key == anywherev1.RenewEtcdAnnotation && is.Spec.ExternalEtcdConfiguration == nil:
			return rejection("metadata.annotations: cluster %s has no external etcd; set %s, because members on control plane machines get new certificates with these", is.Name, anywherev1.RenewControlPlaneAnnotation)
		}
	}
	return nil
}
