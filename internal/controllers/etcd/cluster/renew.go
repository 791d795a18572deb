package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	etcdv1 "github.com/drover-dev/drover/api/etcdcluster/v1beta1"
	infrav1 "github.com/drover-dev/drover/api/infrastructure/v1beta1"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/controllers/etcd/plan"
)

// requested returns the time since when certificates must have been issued, by an annotation. A
// request without a time is none.
func (s *scope) requested(annotation string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, s.etcd.Annotations[annotation])
	return at, err == nil
}

// precedesRenewal reports whether the certificate of a member was issued before the last request
// for new ones. The annotation of the machine says when two thirds of its lifetime are over.
func (s *scope) precedesRenewal(m *infrav1.PacketMachine) bool {
	since, requested := s.requested(etcdv1.RenewMembersAnnotation)
	due, err := time.Parse(time.RFC3339, m.Annotations[etcdv1.ExpiresAnnotation])
	return requested && err == nil && due.Add(-memberLife*2/3).Before(since)
}

// renewClient replaces the certificate of API servers if somebody requested that. The old one stays
// valid, so that API servers get the new one when their machines are replaced. A certificate that
// is not from here stays; Cluster API may have become the owner of one that is.
func (c *Controller) renewClient(ctx context.Context, s *scope) error {
	since, requested := s.requested(etcdv1.RenewClientAnnotation)
	if !requested {
		return nil
	}
	cached, err := c.secret(ctx, s, clientSuffix)
	if err != nil {
		return err
	}
	certs, err := pki.ParseCerts(cached.Data[corev1.TLSCertKey])
	if err == nil && !pki.IssuedBefore(certs[0], since) || cached.Labels[etcdv1.MemberLabel] != s.etcd.Name {
		s.clientRenewed = &since
		return nil
	}
	secret := cached.DeepCopy()
	if secret.Data, err = s.issueClient(); err != nil {
		return err
	}
	if err := c.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("updating Secret %q: %w", secret.Name, err)
	}
	c.Events.Eventf(s.etcd, corev1.EventTypeNormal, "CertificateRenewed", "Renewed the certificate of API servers")
	s.clientRenewed = &since
	return nil
}

// reportRenewals reports the requests that are complete: when nothing is left to change, all
// members are on machines with certificates that are new enough.
func (s *scope) reportRenewals() {
	status := &s.etcd.Status.Certificates
	if s.clientRenewed != nil {
		status.Client = ptr.To(metav1.NewTime(*s.clientRenewed))
	}
	if since, requested := s.requested(etcdv1.RenewMembersAnnotation); requested && s.action.Kind == plan.Done {
		status.Members = ptr.To(metav1.NewTime(since))
	}
}
