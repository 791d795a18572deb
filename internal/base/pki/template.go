package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"time"
)

// skew is the tolerated clock skew of peers: validity begins this long before issuance.
const skew = 5 * time.Minute

// Template returns the template of a certificate that is valid from now on, for host names or
// addresses. The caller adds the extended key usage.
func Template(subject pkix.Name, hosts []string, now time.Time, life time.Duration) *x509.Certificate {
	template := &x509.Certificate{
		Subject:   subject,
		KeyUsage:  x509.KeyUsageDigitalSignature,
		NotBefore: now.Add(-skew),
		NotAfter:  now.Add(life),
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

// IssuedBefore reports whether a certificate from a Template was issued before a time.
func IssuedBefore(cert *x509.Certificate, at time.Time) bool {
	return cert.NotBefore.Add(skew).Before(at.Truncate(time.Second)) // Certificates contain no fractions.
}

// Covers reports whether a certificate is valid for all hosts.
func Covers(cert *x509.Certificate, hosts []string) bool {
	for _, host := range hosts {
		if cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

// IssuedAt returns when an authority of this package issued a certificate.
func IssuedAt(cert *x509.Certificate) time.Time { return cert.NotBefore.Add(skew) }

// Due reports whether to replace a certificate: because it expires soon, or because it is not valid
// yet, after it was issued by a clock that was ahead.
func Due(cert *x509.Certificate, now time.Time) bool {
	return NotYetValid(cert, now) || !now.Before(RenewAt(cert))
}

// NotYetValid reports whether a certificate was issued by a clock that was ahead.
func NotYetValid(cert *x509.Certificate, now time.Time) bool { return now.Before(cert.NotBefore) }

// RenewAt returns when to replace a certificate: with a third of its lifetime left, so that a
// program that was stopped for weeks starts with valid certificates.
func RenewAt(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) * 2 / 3)
}
