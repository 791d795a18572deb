// Package safeconfig reads kubeconfigs that come from Secrets. Whoever can write such a Secret
// decides what its reader does next, so a kubeconfig from a Secret contains everything that it
// needs and makes its reader neither open files nor start programs.
//
// It is the only package that turns the kubeconfig of a Secret into a connection. Start with Load.
package safeconfig

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-dev/drover/internal/base/bounded"
	"github.com/drover-dev/drover/internal/base/safeyaml"
)

// AllowInsecureAnnotation on a Namespace allows kubeconfigs of that namespace to skip the
// verification of certificates. Only administrators can change Namespaces.
const AllowInsecureAnnotation = "drover.dev/allow-insecure-kubeconfigs"

// Policy is what an administrator has allowed.
type Policy struct {
	// InsecureTLS allows connections that don't verify the server.
	InsecureTLS bool
}

// RejectedError means that a kubeconfig has a setting that Secrets must not have.
type RejectedError struct{ Setting, Reason string }

func (e *RejectedError) Error() string {
	return fmt.Sprintf("kubeconfig sets %s, which %s", e.Setting, e.Reason)
}

// InsecureError means that a kubeconfig doesn't verify the server, which Policy doesn't allow.
type InsecureError struct{ Setting string }

func (e *InsecureError) Error() string {
	return fmt.Sprintf("kubeconfig sets %s, which doesn't verify the server: an administrator can allow it with the annotation %s=true on the namespace of the cluster",
		e.Setting, AllowInsecureAnnotation)
}

// Load parses a kubeconfig and returns its current context, without other entries. Errors contain
// no credentials.
func Load(data []byte, p Policy) (*clientcmdapi.Config, error) {
	if err := safeyaml.Check(data); err != nil {
		return nil, fmt.Errorf("invalid kubeconfig: %w", err)
	}
	cfg, err := clientcmd.Load(data)
	if err != nil {
		return nil, errors.New("invalid kubeconfig") // The cause may quote credentials.
	}
	current := cfg.Contexts[cfg.CurrentContext]
	if current == nil || cfg.Clusters[current.Cluster] == nil || cfg.AuthInfos[current.AuthInfo] == nil {
		return nil, errors.New("invalid kubeconfig: the current context is missing or incomplete")
	}
	cluster, user := cfg.Clusters[current.Cluster], cfg.AuthInfos[current.AuthInfo]
	if err := errors.Join(checkCluster(cluster, p), checkUser(user)); err != nil {
		return nil, err
	}
	out := clientcmdapi.NewConfig()
	out.CurrentContext = cfg.CurrentContext
	out.Contexts[cfg.CurrentContext] = current
	out.Clusters[current.Cluster], out.AuthInfos[current.AuthInfo] = cluster, user
	return out, nil
}

// REST parses a kubeconfig and returns the connection of its current context.
func REST(data []byte, p Policy) (*rest.Config, error) {
	cfg, err := Load(data, p)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*cfg, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errors.New("invalid kubeconfig") // The cause may quote credentials.
	}
	if config.Proxy != nil {
		config.Dial = bounded.DialAwayFromHost // The name of a proxy may resolve to this host.
	}
	return config, nil
}

const (
	readsFile   = "names a file of whoever reads the kubeconfig: put the content into the kubeconfig"
	startsCode  = "runs code of whoever reads the kubeconfig: use a client certificate or a token"
	notProxy    = "is not the URL of a proxy"
	proxyOnHost = "leads to services of whoever reads the kubeconfig: use a proxy on another host"
)

func checkUser(u *clientcmdapi.AuthInfo) error {
	switch {
	case u.TokenFile != "":
		return &RejectedError{"tokenFile", readsFile}
	case u.ClientCertificate != "":
		return &RejectedError{"client-certificate", readsFile}
	case u.ClientKey != "":
		return &RejectedError{"client-key", readsFile}
	case u.Exec != nil:
		return &RejectedError{"exec", startsCode}
	case u.AuthProvider != nil:
		return &RejectedError{"auth-provider", startsCode}
	}
	return nil
}

func checkCluster(c *clientcmdapi.Cluster, p Policy) error {
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http":
		return errors.New("invalid kubeconfig: server must be a URL with https://")
	case c.CertificateAuthority != "":
		return &RejectedError{"certificate-authority", readsFile}
	case c.InsecureSkipTLSVerify && !p.InsecureTLS:
		return &InsecureError{"insecure-skip-tls-verify"}
	case server.Scheme == "http" && !p.InsecureTLS:
		return &InsecureError{"a server without https://"}
	case c.ProxyURL != "":
		return checkProxy(c.ProxyURL)
	}
	return nil
}

// checkProxy rejects addresses of this host. Names are checked again when they are resolved.
func checkProxy(address string) error {
	proxy, err := url.Parse(address)
	if err != nil || proxy.Hostname() == "" {
		return &RejectedError{"proxy-url", notProxy}
	}
	name := strings.ToLower(strings.TrimSuffix(proxy.Hostname(), "."))
	ip, err := netip.ParseAddr(name)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || err == nil && bounded.OnHost(ip) {
		return &RejectedError{"proxy-url", proxyOnHost}
	}
	return nil
}
