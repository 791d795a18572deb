package spec

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// proxyRule never quotes a proxy, because the address may contain a password.
func proxyRule(c *anywherev1.Cluster) Violations {
	p := c.Spec.ProxyConfiguration
	if p == nil {
		return nil
	}
	return append(proxyProblems(p.HTTPProxy, "spec.proxyConfiguration.httpProxy"), proxyProblems(p.HTTPSProxy, "spec.proxyConfiguration.httpsProxy")...)
}

func proxyProblems(proxy, path string) Violations {
	const form = "write it as http://proxy.example.com:3128 or 192.0.2.1:3128"
	if proxy == "" {
		return violation(path, "set both httpProxy and httpsProxy", "is not set")
	}
	address := proxy
	if strings.Contains(proxy, "://") {
		u, err := url.Parse(proxy)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return violation(path, form, "is not a valid proxy address")
		}
		address = u.Host
	}
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil || !isHost(host):
		return violation(path, form, "must be a host and a port")
	case !isPort(port):
		return violation(path, "use a port between 1 and 65535", "has an invalid port")
	}
	return nil
}

// directHost is a destination that bypasses the proxy. It is written to a systemd unit, where
// quotes and percent signs are special.
var directHost = regexp.MustCompile(`^[0-9A-Za-z.:/*_-]+$`)

func noProxyRule(c *anywherev1.Cluster) Violations {
	if c.Spec.ProxyConfiguration == nil {
		return nil
	}
	var problems Violations
	for i, entry := range c.Spec.ProxyConfiguration.NoProxy {
		if !directHost.MatchString(entry) {
			problems = append(problems, violation(fmt.Sprintf("spec.proxyConfiguration.noProxy[%d]", i), "use one entry per address, CIDR block or domain",
				"%q is not an address, a CIDR block or a domain", printable(entry))...)
		}
	}
	return problems
}

func mirrorRule(c *anywherev1.Cluster) Violations {
	m := c.Spec.RegistryMirrorConfiguration
	if m == nil {
		return nil
	}
	const at = "spec.registryMirrorConfiguration"
	var problems Violations
	switch {
	case m.Endpoint == "":
		problems = violation(at+".endpoint", "set it to the address or host name of the mirror", "no value set for RegistryMirrorConfiguration.Endpoint")
	case !isHost(m.Endpoint):
		problems = violation(at+".endpoint", "use an IP address or a host name without scheme, port or path", "%q is not a valid address", printable(m.Endpoint))
	}
	if !isPort(m.Port) {
		problems = append(problems, violation(at+".port", `use a port between 1 and 65535, such as "443"`, "%q is not a port", printable(m.Port))...)
	}
	if m.CACertContent != "" && !isCertificate(m.CACertContent) {
		problems = append(problems, violation(at+".caCertContent", "use PEM certificates, which begin with -----BEGIN CERTIFICATE-----", "does not contain a PEM certificate")...)
	}
	return problems
}

// cloudRegistry matches the registries of curated packages. A mirror can have one namespace for all
// of them.
var cloudRegistry = regexp.MustCompile(`^\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com$`)

func mirroredRule(c *anywherev1.Cluster) Violations {
	if c.Spec.RegistryMirrorConfiguration == nil {
		return nil
	}
	const at = "spec.registryMirrorConfiguration.ociNamespaces"
	var problems Violations
	curated, seen := 0, map[string]bool{}
	for i, n := range c.Spec.RegistryMirrorConfiguration.OCINamespaces {
		path := fmt.Sprintf("%s[%d].registry", at, i)
		if n.Namespace != "" && !registryPath.MatchString(n.Namespace) {
			problems = append(problems, violation(fmt.Sprintf("%s[%d].namespace", at, i), "use a path such as team/images", "%q is not a valid registry path", printable(n.Namespace))...)
		}
		switch {
		case n.Registry == "":
			problems = append(problems, violation(path, "set it to the mirrored registry", "registry can't be set to empty in OCINamespaces")...)
		case !isRegistry(n.Registry):
			problems = append(problems, violation(path, "use a host such as registry.example.com", "%q is not a valid registry", printable(n.Registry))...)
		case seen[n.Registry]:
			problems = append(problems, violation(path, "keep one of them", "registry %s is listed more than once", n.Registry)...)
		case cloudRegistry.MatchString(n.Registry):
			curated++
		}
		seen[n.Registry] = true
	}
	if curated > 1 {
		problems = append(problems, violation(at, "keep one of them", "only one registry mirror for curated packages is supported")...)
	}
	return problems
}

// registryPath is the format of a path in a registry.
var registryPath = regexp.MustCompile(`^[a-z0-9]+([._/-]+[a-z0-9]+)*$`)

func isRegistry(registry string) bool {
	host, port, found := strings.Cut(registry, ":")
	return isHost(host) && (!found || isPort(port))
}

func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == port
}

func isCertificate(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" {
		return false
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil
}
