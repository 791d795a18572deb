package etcd

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/pki"
)

// certificateLife limits what a stolen certificate is worth. Snapshots of large clusters take
// minutes.
const certificateLife = time.Hour

// credentials returns the configuration of a client. Of stacked etcd, the management plane has the
// CA and issues a certificate; of external etcd, it has the certificate of the API servers.
func credentials(ctx context.Context, c Cluster, external bool) (*tls.Config, error) {
	ca, err := readSecret(ctx, c, secret.EtcdCA)
	if err != nil {
		return nil, err
	}
	trust, err := pki.ClientConfig(nil)
	if err != nil {
		return nil, err
	}
	if trust.RootCAs, err = pki.Pool(ca.Data[corev1.TLSCertKey]); err != nil {
		return nil, fmt.Errorf("reading the CA in Secret %q: %w", ca.Name, err)
	}
	pair, err := clientPair(ctx, c, ca, external)
	if err != nil {
		return nil, err
	}
	trust.Certificates = []tls.Certificate{pair}
	return trust, nil
}

func clientPair(ctx context.Context, c Cluster, ca *corev1.Secret, external bool) (tls.Certificate, error) { //nolint:revive // See credentials.
	cert, key := ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey]
	if external {
		issued, err := readSecret(ctx, c, secret.APIServerEtcdClient)
		if err != nil {
			return tls.Certificate{}, err
		}
		return parsePair(issued.Name, issued.Data[corev1.TLSCertKey], issued.Data[corev1.TLSPrivateKeyKey])
	}
	authority, err := pki.ParseAuthority(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the CA in Secret %q: %w", ca.Name, err)
	}
	template := pki.Template(pkix.Name{CommonName: "drover-etcd"}, nil, time.Now(), certificateLife)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	cert, key, err = authority.Issue(template)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("issuing a client certificate for etcd: %w", err)
	}
	return parsePair(ca.Name, cert, key)
}

func parsePair(name string, cert, key []byte) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("reading the client certificate of etcd in Secret %q: %w", name, err)
	}
	return pair, nil
}

// readSecret reads a Secret of the cluster.
func readSecret(ctx context.Context, c Cluster, purpose secret.Purpose) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	key := client.ObjectKey{Namespace: c.Namespace, Name: secret.Name(c.Name, purpose)}
	if err := c.Objects.Get(ctx, key, s); err != nil {
		return nil, fmt.Errorf("reading the credentials of etcd: %w", err)
	}
	return s, nil
}

// Authority returns the key of a cluster's CA, which signs snapshots of the cluster, and the
// certificates that verify them. The key is nil if the management plane doesn't have it.
func Authority(ctx context.Context, c Cluster) (crypto.Signer, []*x509.Certificate, error) {
	ca, err := readSecret(ctx, c, secret.ClusterCA)
	if err != nil {
		return nil, nil, err
	}
	certs, err := pki.ParseCerts(ca.Data[corev1.TLSCertKey])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the CA in Secret %q: %w", ca.Name, err)
	}
	if len(ca.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return nil, certs, nil
	}
	key, err := pki.ParseKey(ca.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key of the CA in Secret %q: %w", ca.Name, err)
	}
	return key, certs, nil
}
