package build

import (
	"fmt"
	"slices"
	"strings"
)

// egressFile extends the unit of containerd, the only process of a machine that needs the proxy.
const egressFile = "/etc/systemd/system/containerd.service.d/http-proxy.conf"

// egress makes containerd use the proxy.
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

// unitText escapes percent signs, which are special in systemd units and occur in passwords.
func unitText(value string) string { return strings.ReplaceAll(value, "%", "%%") }

// direct returns the destinations that bypass the proxy. They include the endpoint only if the spec
// sets it, because an endpoint that is reserved later must not change machines.
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

// unique removes duplicates and keeps the order.
func unique(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		was := seen[s]
		seen[s] = true
		return was || s == ""
	})
}
