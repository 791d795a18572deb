package cluster

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/clusters/build"
)

// postponeRenewals ignores requests for new certificates until their time: Cluster API does nothing
// about a time in the future when it comes.
func (s *scope) postponeRenewals(config *anywherev1.Cluster, now time.Time) {
	for _, annotation := range []string{anywherev1.RenewControlPlaneAnnotation, anywherev1.RenewEtcdAnnotation} {
		if since, requested := build.Requested(config, annotation); requested && since.After(now) {
			delete(config.Annotations, annotation)
			s.postponed = earlier(s.postponed, since.Sub(now))
		}
	}
}

// controlPlaneMachines returns all control plane machines, those being deleted included.
func (f facts) controlPlaneMachines() []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, m := range f.machines {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			out = append(out, m)
		}
	}
	return out
}

// renewed returns the last requests for new certificates that are complete.
func renewed(f facts) anywherev1.CertificatesRenewed {
	out := f.cluster.Status.CertificatesRenewed
	if since, requested := build.Requested(f.cluster, anywherev1.RenewControlPlaneAnnotation); requested && f.controlPlaneRenewed(since) {
		out.ControlPlane = &since
	}
	if since, requested := build.Requested(f.cluster, anywherev1.RenewEtcdAnnotation); requested && f.etcdRenewed(since) {
		out.Etcd = &since
	}
	return out
}

// controlPlaneRenewed reports whether all control plane machines were created since a time.
func (f facts) controlPlaneRenewed(since metav1.Time) bool {
	if f.controlPlane == nil || f.controlPlane.Spec.Rollout.After.Before(&since) || controlPlaneReady(f).status != metav1.ConditionTrue {
		return false
	}
	for _, m := range f.controlPlaneMachines() {
		if m.CreationTimestamp.Before(&since) {
			return false
		}
	}
	return true
}

// etcdRenewed reports whether the certificates of all members of external etcd were issued since a
// time.
func (f facts) etcdRenewed(since metav1.Time) bool {
	if f.etcd == nil || etcdReady(f).status != metav1.ConditionTrue {
		return false
	}
	at := f.etcd.Status.Certificates.Members
	return at != nil && !at.Before(&since)
}

// setRenewal reports whether requests for new certificates are complete. Ready does not depend on
// it: it depends on the machines that are replaced.
func setRenewal(to *anywherev1.ClusterStatus, f facts) {
	var wanted, missing []string
	for _, r := range []struct {
		annotation, what string
		done             *metav1.Time
	}{
		{anywherev1.RenewEtcdAnnotation, "external etcd", to.CertificatesRenewed.Etcd},
		{anywherev1.RenewControlPlaneAnnotation, "the control plane", to.CertificatesRenewed.ControlPlane},
	} {
		since, requested := build.Requested(f.cluster, r.annotation)
		if !requested {
			continue
		}
		wanted = append(wanted, r.what)
		if r.done == nil || r.done.Before(&since) {
			missing = append(missing, r.what)
		}
	}
	switch {
	case len(wanted) == 0:
		meta.RemoveStatusCondition(&to.Conditions, anywherev1.CertificatesCurrent)
	case len(missing) > 0:
		message := fmt.Sprintf("Machines of %s are replaced one at a time to renew their certificates", strings.Join(missing, " and "))
		set(to, f, anywherev1.CertificatesCurrent, no(anywherev1.CertificatesRenewingReason, "%s", message))
	default:
		set(to, f, anywherev1.CertificatesCurrent, yes(anywherev1.RenewedReason))
	}
}
