package build

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
)

const (
	renewal = "2026-05-01T12:00:00Z"
	earlier = "2026-04-01T12:00:00Z"
)

func at(t testing.TB, text string) metav1.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return metav1.NewTime(parsed)
}

// request requests new certificates of the control plane.
func request(in *Input, annotation, since string) {
	metav1.SetMetaDataAnnotation(&in.Config.Cluster.ObjectMeta, annotation, since)
}

func TestControlPlaneIsReplacedToRenewCertificates(t *testing.T) {
	before := controlplanev1.KubeadmControlPlaneRolloutBeforeSpec{CertificatesExpiryDays: renewalDays}
	for name, tt := range map[string]struct {
		external bool
		change   func(*Input)
		want     metav1.Time
	}{
		"nobody requested it":              {change: func(*Input) {}},
		"requested":                        {change: func(in *Input) { request(in, anywherev1.RenewControlPlaneAnnotation, renewal) }, want: at(t, renewal)},
		"requested without a time":         {change: func(in *Input) { request(in, anywherev1.RenewControlPlaneAnnotation, "now") }},
		"only external etcd was requested": {external: true, change: func(in *Input) { request(in, anywherev1.RenewEtcdAnnotation, renewal) }},
		"API servers have an old certificate": {external: true, change: func(in *Input) {
			request(in, anywherev1.RenewControlPlaneAnnotation, renewal)
			old := at(t, earlier)
			in.Now.Etcd.Status.Certificates.Client = &old
			in.Now.ControlPlane.Spec.Rollout.After = old
		}, want: at(t, earlier)},
		"API servers get a new certificate": {external: true, change: func(in *Input) {
			request(in, anywherev1.RenewControlPlaneAnnotation, renewal)
			current := at(t, renewal)
			in.Now.Etcd.Status.Certificates.Client = &current
		}, want: at(t, renewal)},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, "small")
			if tt.external {
				in = running(t)
			}
			tt.change(&in)
			got := build(t, in).ControlPlane.Spec.Rollout
			if diff := cmp.Diff(controlplanev1.KubeadmControlPlaneRolloutSpec{Before: before, After: tt.want}, got); diff != "" {
				t.Errorf("rollout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestsForCertificatesReachEtcd(t *testing.T) {
	in := running(t)
	request(&in, anywherev1.RenewEtcdAnnotation, "2026-05-01T14:00:00+02:00")
	request(&in, anywherev1.RenewControlPlaneAnnotation, earlier)
	annotations := build(t, in).Etcd.Annotations
	if members, client := annotations[etcdv1.RenewMembersAnnotation], annotations[etcdv1.RenewClientAnnotation]; members != renewal || client != earlier {
		t.Errorf("members since %q, client since %q", members, client)
	}
}
