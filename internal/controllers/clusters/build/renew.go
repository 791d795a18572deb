package build

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
)

// renewalDays is how long before their expiry certificates of control plane machines are renewed.
// Kubeadm issues them for a year.
const renewalDays = 60

// Requested returns the time since when certificates must have been issued, by an annotation of a
// Cluster. A request without a valid time is none.
func Requested(c *anywherev1.Cluster, annotation string) (metav1.Time, bool) {
	at, err := time.Parse(time.RFC3339, c.Annotations[annotation])
	return metav1.NewTime(at), err == nil
}

// rolloutOfCertificates returns when control plane machines are replaced to renew certificates. One
// that was requested waits for the certificate with which API servers connect to external etcd.
func (b *builder) rolloutOfCertificates() controlplanev1.KubeadmControlPlaneRolloutSpec {
	out := controlplanev1.KubeadmControlPlaneRolloutSpec{Before: controlplanev1.KubeadmControlPlaneRolloutBeforeSpec{CertificatesExpiryDays: renewalDays}}
	since, requested := Requested(b.cluster, anywherev1.RenewControlPlaneAnnotation)
	switch {
	case requested && (b.set.Etcd == nil || b.renewedClient(since)):
		out.After = since
	case b.Now.ControlPlane != nil:
		out.After = b.Now.ControlPlane.Spec.Rollout.After
	}
	return out
}

// renewedClient reports whether the certificate of API servers was issued since a time.
func (b *builder) renewedClient(since metav1.Time) bool {
	at := b.Now.Etcd.Status.Certificates.Client
	return at != nil && !at.Before(&since)
}

// renewEtcd passes requests for new certificates on to external etcd.
func (b *builder) renewEtcd(to *etcdv1.EtcdadmCluster) {
	for from, annotation := range map[string]string{
		anywherev1.RenewEtcdAnnotation: etcdv1.RenewMembersAnnotation, anywherev1.RenewControlPlaneAnnotation: etcdv1.RenewClientAnnotation,
	} {
		if since, requested := Requested(b.cluster, from); requested {
			metav1.SetMetaDataAnnotation(&to.ObjectMeta, annotation, since.UTC().Format(time.RFC3339))
		}
	}
}
