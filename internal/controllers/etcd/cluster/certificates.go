package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/controllers/etcd/boot"
)

// Names of Secrets, which start with the name of the Cluster. Cluster API reads the last two.
const (
	authoritySuffix = "-managed-etcd"
	caSuffix        = "-etcd"
	clientSuffix    = "-apiserver-etcd-client"
)

// Lifetimes. The certificate of API servers is as long-lived as the CA, since a new one reaches
// only new machines. A member gets a new certificate by being replaced, with a third of it left.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	memberLife    = 365 * 24 * time.Hour
	managerLife   = time.Hour
)

// ensureCertificates creates the CA, the Secrets that Cluster API needs, and nothing else: the
// certificates of members are issued with their machines.
func (c *Controller) ensureCertificates(ctx context.Context, s *scope) error {
	if err := c.ensureAuthority(ctx, s); err != nil {
		return err
	}
	ca := s.authority.PEM()
	if err := c.ensureSecret(ctx, s, caSuffix, func() (map[string][]byte, error) {
		return map[string][]byte{corev1.TLSCertKey: ca}, nil
	}); err != nil {
		return err
	}
	if err := c.ensureSecret(ctx, s, clientSuffix, s.issueClient); err != nil {
		return err
	}
	if err := c.renewClient(ctx, s); err != nil {
		return err
	}
	s.certificates = true
	return nil
}

// issueClient issues the certificate of API servers.
func (s *scope) issueClient() (map[string][]byte, error) {
	pair, err := s.issue(pkix.Name{CommonName: s.cluster.Name + "-kube-apiserver-etcd-client", Organization: []string{"system:masters"}}, nil, authorityLife)
	return map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key}, err
}

func (c *Controller) ensureAuthority(ctx context.Context, s *scope) error {
	err := c.ensureSecret(ctx, s, authoritySuffix, func() (map[string][]byte, error) {
		a, err := pki.NewAuthority(s.cluster.Name+"-etcd", c.Clock.Now(), authorityLife)
		if err != nil {
			return nil, err
		}
		return map[string][]byte{corev1.TLSCertKey: a.PEM(), corev1.TLSPrivateKeyKey: a.Key}, nil
	})
	if err != nil {
		return err
	}
	secret, err := c.secret(ctx, s, authoritySuffix)
	if err != nil {
		return err
	}
	s.authority, err = pki.ParseAuthority(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Errorf("reading the CA in Secret %q: %w", secret.Name, err)
	}
	return nil
}

func (c *Controller) secret(ctx context.Context, s *scope, suffix string) (*corev1.Secret, error) {
	return c.Secrets.Secret(ctx, ctrlclient.ObjectKey{Namespace: s.etcd.Namespace, Name: s.cluster.Name + suffix})
}

// errMissing means that a Secret is gone which can't be created again.
var errMissing = errors.New("restore it from a backup: members trust no other CA")

// ensureSecret creates a Secret of the Cluster if it does not exist.
func (c *Controller) ensureSecret(ctx context.Context, s *scope, suffix string, data func() (map[string][]byte, error)) error {
	_, err := c.secret(ctx, s, suffix)
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	if suffix == authoritySuffix && s.initialized() {
		return fmt.Errorf("reading Secret %q: not found; %w", s.cluster.Name+suffix, errMissing)
	}
	secret := &corev1.Secret{ObjectMeta: s.meta(s.cluster.Name + suffix), Type: clusterv1.ClusterSecretType}
	if secret.Data, err = data(); err != nil {
		return err
	}
	if err := c.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating Secret %q: %w", secret.Name, err)
	}
	return nil
}

// issue issues a certificate for servers and clients.
func (s *scope) issue(subject pkix.Name, hosts []string, life time.Duration) (boot.Pair, error) {
	template := pki.Template(subject, hosts, s.controller.Clock.Now(), life)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	cert, key, err := s.authority.Issue(template)
	if err != nil {
		return boot.Pair{}, fmt.Errorf("issuing a certificate for %q: %w", subject.CommonName, err)
	}
	return boot.Pair{Cert: cert, Key: key}, nil
}

// tls returns the configuration with which the manager talks to members.
func (s *scope) tls() (*tls.Config, error) {
	pair, err := s.issue(pkix.Name{CommonName: "drover"}, nil, managerLife)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}, nil
}
