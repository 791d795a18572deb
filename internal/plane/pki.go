package plane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/pki"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
)

// managerUser is the identity of the manager: the user name of its ServiceAccount, so that one role
// binding serves it here and in a Pod.
const managerUser = "system:serviceaccount:drover-system:drover-manager"

// adminGroup has full access. Unlike system:masters, which no authorizer can deny, its privileges
// come from a binding and can be revoked.
const adminGroup = "drover:admins"

// PKI is the set of certificates of one home. Ensure issues the missing ones and can be called at
// any time: at each start, and daily while running. All readers load changed files again.
type PKI struct {
	home Home
	now  time.Time
}

// leaf describes a required certificate.
type leaf struct {
	name   string
	ca     string
	user   string
	groups []string
	hosts  []string
	usage  []x509.ExtKeyUsage
}

var clientUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}

func leaves(c Config) []leaf {
	client, server := clientUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	both := slices.Concat(client, server)
	loopback := []string{"localhost", "127.0.0.1", "::1"}
	api := slices.Concat(loopback, []string{
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		serviceIP, c.APIAddress,
	}, c.SANs)
	registry := loopback
	if c.RegistryAddress != "" {
		registry = slices.Concat(loopback, []string{c.RegistryAddress}, c.SANs)
	}
	all := []leaf{
		{name: "etcd", ca: "etcd-ca", user: "etcd", hosts: loopback, usage: both},
		{name: "etcd-client", ca: "etcd-ca", user: "drover", usage: client},
		{name: "apiserver", ca: "ca", user: "kube-apiserver", hosts: api, usage: server},
		{name: "controller-manager", ca: "ca", user: "system:kube-controller-manager", usage: client},
		{name: "manager", ca: "ca", user: managerUser, groups: []string{"system:serviceaccounts", "system:serviceaccounts:drover-system"}, usage: client},
		{name: "webhook-client", ca: "ca", user: config.WebhookClient, usage: client},
		{name: "supervisor", ca: "ca", user: "drover:supervisor", groups: []string{"system:masters"}, usage: client},
		{name: "admin", ca: "ca", user: "drover:admin", groups: []string{adminGroup}, usage: client},
		{name: "registry", ca: "ca", user: "drover:registry", hosts: registry, usage: server},
	}
	if c.GitOps {
		all = append(all, fluxLeaves()...)
	}
	return all
}

func (h Home) certFile(name string) string { return h.path("pki", name+".crt") }
func (h Home) keyFile(name string) string  { return h.path("pki", name+".key") }

func (h Home) serviceAccountPublicKey() string { return h.path("pki", "service-account.pub") }

// Issued lists the certificates that Ensure issued.
type Issued struct {
	// Authorities are CAs. Some processes read them only when they start.
	Authorities []string
	Leaves      []string
}

// Ensure issues certificates that are missing, damaged, not valid yet, about to expire or have
// other names.
func (p PKI) Ensure(c Config) (Issued, error) {
	var issued Issued
	authorities := map[string]*pki.Authority{}
	for _, name := range []string{"ca", "etcd-ca"} {
		a, created, err := p.ensureCA(name)
		if err != nil {
			return issued, err
		}
		authorities[name] = a
		if created {
			issued.Authorities = append(issued.Authorities, name)
		}
	}
	if err := p.ensureServiceAccountKey(); err != nil {
		return issued, err
	}
	for _, l := range leaves(c) {
		done, err := p.ensureLeaf(authorities[l.ca], l)
		if err != nil {
			return issued, err
		}
		if done {
			issued.Leaves = append(issued.Leaves, l.name)
		}
	}
	return issued, nil
}

// ensureServiceAccountKey creates the key that signs tokens, and writes its public half, with which
// the API server verifies them.
func (p PKI) ensureServiceAccountKey() error {
	path := p.home.keyFile("service-account")
	signer, err := pki.LoadKey(path)
	if err != nil {
		if err := p.home.checkReplaceable("the key of service accounts", err, path); err != nil {
			return err
		}
		key, err := pki.NewKey()
		if err != nil {
			return err
		}
		if err := atomicfile.Write(path, key, 0o600); err != nil {
			return err
		}
		if signer, err = pki.ParseKey(key); err != nil {
			return err
		}
	}
	public, err := pki.PublicPEM(signer)
	if err != nil {
		return err
	}
	return atomicfile.Write(p.home.serviceAccountPublicKey(), public, 0o600)
}

func (p PKI) ensureLeaf(a *pki.Authority, l leaf) (bool, error) {
	if p.current(a, l) {
		return false, nil
	}
	template := pki.Template(pkix.Name{CommonName: l.user, Organization: l.groups}, l.hosts, p.now, leafLifetime)
	template.ExtKeyUsage = l.usage
	cert, key, err := a.Issue(template)
	if err != nil {
		return false, fmt.Errorf("issuing certificate %q: %w", l.name, err)
	}
	return true, p.writePair(l.name, cert, key)
}

// current reports whether the certificate on disk is valid for l.
func (p PKI) current(a *pki.Authority, l leaf) bool {
	cert, err := pki.LoadPair(p.home.certFile(l.name), p.home.keyFile(l.name))
	if err != nil || pki.Due(cert, p.now) || cert.CheckSignatureFrom(a.Certs[0]) != nil {
		return false
	}
	groups := slices.Sorted(slices.Values(cert.Subject.Organization))
	return cert.Subject.CommonName == l.user && pki.Covers(cert, l.hosts) && slices.Equal(groups, slices.Sorted(slices.Values(l.groups)))
}

// writePair writes the key first: a certificate without its key would appear complete after a
// crash.
func (p PKI) writePair(name string, cert, key []byte) error {
	if err := os.Remove(p.home.certFile(name)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("replacing certificate %q: %w", name, err)
	}
	if err := atomicfile.Write(p.home.keyFile(name), key, 0o600); err != nil {
		return err
	}
	return atomicfile.Write(p.home.certFile(name), cert, 0o600)
}
