package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestRenewalIsReportedWhenEveryMachineIsNew(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	before, after := metav1.NewTime(since.Add(-time.Hour)), metav1.NewTime(since.Add(time.Hour))
	const (
		all     = "Machines of external etcd and the control plane are replaced one at a time to renew their certificates"
		planes  = "Machines of the control plane are replaced one at a time to renew their certificates"
		members = "Machines of external etcd are replaced one at a time to renew their certificates"
	)
	machines := func(f *facts, created metav1.Time) {
		for _, m := range f.machines {
			if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
				m.CreationTimestamp = created
			}
		}
	}
	for name, tt := range map[string]struct {
		change             func(*facts)
		controlPlane, etcd bool
		condition          string
		forgetsRequest     bool
	}{
		"nobody requested it": {change: func(*facts) {}, forgetsRequest: true, condition: "nothing"},
		"everything is new":   {change: func(*facts) {}, controlPlane: true, etcd: true, condition: "True Renewed"},
		"a machine is old": {
			change: func(f *facts) { machines(f, before) }, etcd: true, condition: "False CertificatesRenewing " + planes,
		},
		"the request has not reached the control plane": {
			change: func(f *facts) { f.controlPlane.Spec.Rollout.After = before }, etcd: true, condition: "False CertificatesRenewing " + planes,
		},
		"a member is old": {
			change: func(f *facts) { f.etcd.Status.Certificates.Members = &before }, controlPlane: true, condition: "False CertificatesRenewing " + members,
		},
		"etcd is not ready, so nothing is known": {
			change:    func(f *facts) { f.etcd.Status.Conditions[0].Status = metav1.ConditionFalse },
			condition: "False CertificatesRenewing " + all,
		},
		"what was complete stays complete while a machine is replaced for another reason": {
			change: func(f *facts) {
				f.etcd.Status.Conditions[0].Status = metav1.ConditionFalse
				f.cluster.Status.CertificatesRenewed = anywherev1.CertificatesRenewed{ControlPlane: &since, Etcd: &since}
			},
			controlPlane: true, etcd: true, condition: "True Renewed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthyEtcd()
			if !tt.forgetsRequest {
				f.cluster.Annotations = map[string]string{
					anywherev1.RenewControlPlaneAnnotation: since.UTC().Format(time.RFC3339), anywherev1.RenewEtcdAnnotation: since.UTC().Format(time.RFC3339),
				}
			}
			f.controlPlane.Spec.Rollout.After, f.etcd.Status.Certificates.Members = since, &after
			machines(&f, after)
			tt.change(&f)
			got := status(f)
			if text := conditionText(got, anywherev1.CertificatesCurrent); text != tt.condition {
				t.Errorf("condition %q, want %q", text, tt.condition)
			}
			if plane, etcd := got.CertificatesRenewed.ControlPlane, got.CertificatesRenewed.Etcd; (plane != nil) != tt.controlPlane || (etcd != nil) != tt.etcd {
				t.Errorf("renewed: %+v", got.CertificatesRenewed)
			}
		})
	}
}

func TestRequestsForTheFutureWait(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	c := &anywherev1.Cluster{}
	c.Annotations = map[string]string{anywherev1.RenewControlPlaneAnnotation: "2026-05-01T12:00:30Z", anywherev1.RenewEtcdAnnotation: "2026-05-01T11:00:00Z"}
	s := &scope{}
	s.postponeRenewals(c, now)
	if _, kept := c.Annotations[anywherev1.RenewControlPlaneAnnotation]; kept || s.next() != 30*time.Second || c.Annotations[anywherev1.RenewEtcdAnnotation] == "" {
		t.Errorf("next in %s, requests %v", s.next(), c.Annotations)
	}
}
