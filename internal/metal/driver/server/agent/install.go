package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// Files that the agent writes besides those of the spec.
const (
	containerdConfig = node.ServerDir + "/containerd.toml"
	kubeletSettings  = "/etc/kubernetes/kubelet.conf.d/20-server.conf"
	endpointFile     = "/etc/drover/endpoint"
	addressesFile    = "/etc/drover/addresses"
	hostsFile        = "/etc/hosts"
	hostnameFile     = "/etc/hostname"
	keysFile         = "/root/.ssh/authorized_keys"
	unitDir          = "/etc/systemd/system"
)

const containerdText = `version = 3
disabled_plugins = ["io.containerd.internal.v1.opt"]

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"

  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "%s"

  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "/etc/containerd/certs.d"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = %t

  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        SystemdCgroup = %t

  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
`

// units are the services that run the node.
func units() map[string]string {
	return map[string]string{
		"containerd.service": `[Unit]
Description=containerd
After=network.target

[Service]
Type=notify
ExecStartPre=-/sbin/modprobe overlay
ExecStart=` + node.ServerDir + `/bin/containerd --config ` + containerdConfig + `
Restart=always
RestartSec=2
Delegate=yes
KillMode=process
OOMScoreAdjust=-999
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy=multi-user.target
`,
		"kubelet.service": `[Unit]
Description=kubelet
After=containerd.service network-online.target
Wants=network-online.target
ConditionPathExists=/var/lib/kubelet/config.yaml

[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml --config-dir=/etc/kubernetes/kubelet.conf.d"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
`,
		"drover-endpoint.service": `[Unit]
Description=Control plane endpoint
After=network-online.target
ConditionPathExists=` + endpointFile + `

[Service]
ExecStart=` + Program + ` server-agent endpoint
Restart=always
RestartSec=0.2

[Install]
WantedBy=multi-user.target
`,
		"drover-addresses.service": `[Unit]
Description=Elastic addresses
After=network-online.target
ConditionPathExists=` + addressesFile + `

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + Program + ` server-agent apply-addresses

[Install]
WantedBy=multi-user.target
`,
	}
}

// provisionUnit runs the agent until the server is provisioned, across reboots.
const provisionUnit = `[Unit]
Description=Provision this server
After=network-online.target
Wants=network-online.target

[Service]
ExecStart=` + Program + ` server-agent provision
Restart=on-failure
RestartSec=1
KillMode=process

[Install]
WantedBy=multi-user.target
`

// settings are the kernel settings of a node.
const settings = "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\nnet.bridge.bridge-nf-call-ip6tables = 1\n"

// texts are the files that depend on the server.
func (s Spec) texts(traits guest.Traits) (map[string]string, error) {
	kubelet, err := traits.KubeletSettings()
	if err != nil {
		return nil, err
	}
	out := map[string]string{
		containerdConfig: fmt.Sprintf(containerdText, s.Sandbox, traits.Confined, traits.Systemd),
		kubeletSettings:  string(kubelet),
		// The kubelet takes the address of the default route otherwise, which an endpoint may change.
		"/etc/default/kubelet":               "KUBELET_EXTRA_ARGS=--node-ip=" + s.Address.String() + "\n",
		"/etc/modules-load.d/90-drover.conf": "overlay\nbr_netfilter\n",
		"/etc/sysctl.d/90-drover.conf":       settings,
	}
	if s.Endpoint.IsValid() {
		out[endpointFile] = s.Endpoint.String() + " " + s.Link + "\n"
	}
	for name, text := range units() {
		out[filepath.Join(unitDir, name)] = text
	}
	return out, nil
}

// installFiles installs the programs and writes the configuration. What is there already with the
// same content isn't touched.
func (a *agent) installFiles() error {
	texts, err := a.spec.texts(guest.ReadTraits())
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		if err := a.write(path, texts[path]); err != nil {
			return fmt.Errorf("writing %q: %w", path, err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(a.spec.Files)) {
		if err := a.place(path, filepath.Join(Blobs, a.spec.Files[path])); err != nil {
			return fmt.Errorf("installing %q: %w", path, err)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(a.spec.Links)) {
		if err := a.link(path, a.spec.Links[path]); err != nil {
			return fmt.Errorf("installing %q: %w", path, err)
		}
	}
	return nil
}

func (a *agent) write(path, text string) error {
	if have, err := os.ReadFile(path); err == nil && string(have) == text {
		return nil
	}
	if err := a.journal.protect(path); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(text), 0o644)
}

// place gives a blob another name.
func (a *agent) place(path, blob string) error {
	if same(path, blob) {
		return nil
	}
	if err := a.journal.protect(path); err != nil {
		return err
	}
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Link(blob, part); err != nil {
		info, err := os.Stat(blob)
		if err != nil {
			return err
		}
		if err := copyFile(blob, part, info); err != nil {
			return err
		}
	}
	return os.Rename(part, path)
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func (a *agent) link(path, target string) error {
	if have, err := os.Readlink(path); err == nil && have == target {
		return nil
	}
	if err := a.journal.protect(path); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Symlink(target, path)
}

// rename changes the name of the server, and makes it resolve.
func (a *agent) rename(hostname string) error {
	for _, path := range []string{hostnameFile, hostsFile} {
		if err := a.journal.protect(path); err != nil {
			return err
		}
	}
	hosts, err := os.ReadFile(hostsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// In place, because both may be mount points.
	return errors.Join(
		os.WriteFile(hostsFile, []byte(withName(string(hosts), a.spec.Address.String(), hostname)), 0o644), //nolint:gosec // All may resolve names.
		os.WriteFile(hostnameFile, []byte(hostname+"\n"), 0o644),                                           //nolint:gosec // Public.
		setHostname(hostname),
	)
}

// hostsMark ends the line of the agent.
const hostsMark = "# drover"

// withName returns a hosts file in which an address has a name.
func withName(hosts, address, hostname string) string {
	var out strings.Builder
	for line := range strings.Lines(hosts) {
		if !strings.HasSuffix(strings.TrimSpace(line), hostsMark) {
			out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	fmt.Fprintf(&out, "%s %s %s\n", address, hostname, hostsMark)
	return out.String()
}
