package plane

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/kube/flux"
)

// writeKubeconfigs writes the administrator's kubeconfig, which is self-contained, and those of
// internal processes, which refer to files so that renewed certificates are picked up without a
// restart.
func (h Home) writeKubeconfigs(c Config) error {
	for _, name := range c.clients() {
		user := &clientcmdapi.AuthInfo{ClientCertificate: h.certFile(name), ClientKey: h.keyFile(name)}
		if err := writeKubeconfig(h.componentKubeconfig(name), c.APIURL(), h.certFile("ca"), user); err != nil {
			return err
		}
	}
	cert, err := os.ReadFile(h.certFile("admin"))
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	key, err := os.ReadFile(h.keyFile("admin"))
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return writeKubeconfig(h.Kubeconfig(), c.APIURL(), h.certFile("ca"), &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

// clients are the internal processes with a kubeconfig, by the names of their certificates.
func (c Config) clients() []string {
	names := []string{"controller-manager", "manager"}
	if c.GitOps {
		names = append(names, flux.Source().Name, flux.Kustomize().Name)
	}
	return names
}

func (h Home) componentKubeconfig(name string) string { return h.path("run", name+".kubeconfig") }

func writeKubeconfig(path, server, caFile string, user *clientcmdapi.AuthInfo) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return fmt.Errorf("writing kubeconfig %q: %w", path, err)
	}
	const name = "drover"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig %q: %w", path, err)
	}
	return atomicfile.Write(path, data, 0o600)
}

// clientConfig returns the supervisor's client configuration, whose privileges do not depend on
// objects in the API server.
func (h Home) clientConfig(c Config) *rest.Config {
	return &rest.Config{
		Host: c.APIURL(),
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   h.certFile("ca"),
			CertFile: h.certFile("supervisor"),
			KeyFile:  h.keyFile("supervisor"),
		},
		QPS:   -1,
		Burst: -1,
	}
}
