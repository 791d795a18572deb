package build

import (
	"fmt"
	"slices"
	"strings"
)

// egressFile adds to the unit of containerd, the one process of a machine that goes out by itself.
const egressFile = "/etc/systemd/system/containerd.service.d/http-proxy.conf"

// egress makes machines go through a proxy for images.
func (b *builder) egress(m *machines) error {
	proxy := b.cluster.Spec.ProxyConfiguration
	if proxy == nil {
		return nil
	}
	m.file(egressFile, fmt.Sprintf("[Service]\nEnvironment=\"HTTP_PROXY=%s\"\nEnvironment=\"HTTPS_PROXY=%s\"\nEnvironment=\"NO_PROXY=%s\"\n",
		unitText(proxy.HTTPProxy), unitText(proxy.HTTPSProxy), unitText(strings.Join(b.direct(), ","))))
	m.restart(restartContainerd[1:]...)
	return nil
}

// unitText is a value as it stands in a unit, where a percent sign begins something that systemd fills in. Passwords in addresses have them.
func unitText(value string) string { return strings.ReplaceAll(value, "%", "%%") }

// direct is what is reached without a proxy. The endpoint counts if the user gave it: one that is found later must not change machines.
func (b *builder) direct() []string {
	spec := b.cluster.Spec
	out := slices.Concat(spec.ProxyConfiguration.NoProxy, spec.ClusterNetwork.Pods.CidrBlocks, spec.ClusterNetwork.Services.CidrBlocks,
		[]string{"localhost", "127.0.0.1", ".svc", ".cluster.local"})
	if e := spec.ControlPlaneConfiguration.Endpoint; e != nil && e.Host != "" {
		out = append(out, e.Host)
	}
	if mirror := spec.RegistryMirrorConfiguration; mirror != nil {
		out = append(out, mirror.Endpoint)
	}
	return unique(out)
}

// unique keeps the first of each, in their order.
func unique(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		was := seen[s]
		seen[s] = true
		return was || s == ""
	})
}
