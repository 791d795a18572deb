package build

import (
	"encoding/base64"
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// registriesDir contains the registry configuration of containerd; everyRegistry is the directory
// of registries without their own.
const (
	registriesDir = "/etc/containerd/certs.d"
	everyRegistry = "_default"
)

// restartContainerd also configures registriesDir in containerd before version 2.
var restartContainerd = []string{
	`sed -i 's#config_path = ""#config_path = "` + registriesDir + `"#' /etc/containerd/config.toml || true`,
	"systemctl daemon-reload",
	"systemctl restart containerd",
}

// mirrored is a registry and the URL of its mirror.
type mirrored struct{ registry, hosts string }

// secrets builds the Secret with the files that contain credentials.
func (b *builder) secrets() error {
	mirror := b.cluster.Spec.RegistryMirrorConfiguration
	if mirror == nil || !mirror.Authenticate {
		return nil
	}
	if b.Registry == nil {
		return &UnsupportedError{"spec.registryMirrorConfiguration.authenticate", "there are no credentials in the Secret " + anywherev1.RegistryCredentials}
	}
	secret := &corev1.Secret{ObjectMeta: b.meta(mirrorSecretName(b.cluster.Name)), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{}}
	for i, m := range b.registries(mirror) {
		secret.Data[secretKey(i)] = []byte(m.hosts)
	}
	b.set.Secrets = append(b.set.Secrets, secret)
	return nil
}

func secretKey(i int) string { return "hosts-" + strconv.Itoa(i) + ".toml" }

// mirror makes machines pull images from the mirror.
func (b *builder) mirror(m *machines) error {
	mirror := b.cluster.Spec.RegistryMirrorConfiguration
	if mirror == nil {
		return nil
	}
	if mirror.CACertContent != "" {
		m.file(authorityFile(mirror), mirror.CACertContent)
	}
	for i, r := range b.registries(mirror) {
		file := path.Join(registriesDir, r.registry, "hosts.toml")
		if !mirror.Authenticate {
			m.file(file, r.hosts)
			continue
		}
		m.secretFile(file, mirrorSecretName(b.cluster.Name), secretKey(i))
	}
	m.restart(restartContainerd...)
	return nil
}

// restart adds commands that run once before kubeadm.
func (m *machines) restart(commands ...string) {
	have := map[string]bool{}
	for _, c := range m.config.PreKubeadmCommands {
		have[c] = true
	}
	for _, c := range commands {
		if !have[c] {
			m.config.PreKubeadmCommands = append(m.config.PreKubeadmCommands, c)
		}
	}
}

func authorityFile(mirror *anywherev1.RegistryMirrorConfiguration) string {
	return path.Join(registriesDir, mirror.Address(), "ca.crt")
}

// registries returns the mirror itself and the registries that it mirrors: all, unless some are
// listed.
func (b *builder) registries(mirror *anywherev1.RegistryMirrorConfiguration) []mirrored {
	at := "https://" + mirror.Address()
	out := []mirrored{{mirror.Address(), b.hosts(mirror, at, at)}}
	if len(mirror.OCINamespaces) == 0 {
		return append(out, mirrored{everyRegistry, b.hosts(mirror, at, at)})
	}
	for _, n := range mirror.OCINamespaces {
		host := at
		if n.Namespace != "" {
			host = at + "/v2/" + strings.Trim(n.Namespace, "/")
		}
		out = append(out, mirrored{n.Registry, b.hosts(mirror, at, host)})
	}
	return out
}

// hosts returns the registry configuration of containerd. It does not fall back to the mirrored
// registry, which is often unreachable on purpose.
func (b *builder) hosts(mirror *anywherev1.RegistryMirrorConfiguration, server, host string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "server = %q\n\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", server, host)
	if host != server {
		fmt.Fprintln(&out, "  override_path = true")
	}
	if mirror.CACertContent != "" {
		fmt.Fprintf(&out, "  ca = %q\n", authorityFile(mirror))
	}
	if mirror.InsecureSkipVerify {
		fmt.Fprintln(&out, "  skip_verify = true")
	}
	if mirror.Authenticate && b.Registry != nil {
		pair := base64.StdEncoding.EncodeToString([]byte(b.Registry.Username + ":" + b.Registry.Password))
		fmt.Fprintf(&out, "  [host.%q.header]\n    authorization = [\"Basic %s\"]\n", host, pair)
	}
	return out.String()
}
