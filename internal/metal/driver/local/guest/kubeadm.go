package guest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/drover-dev/drover/internal/kube/node"
)

// kubeadm runs the real kubeadm with a configuration completed for a machine in namespaces, so that
// manifests for real machines work unchanged:
//
//   - kube-proxy may not set the size of the connection table, which is the
//     host's, and uses nftables where the host's kernel can do that
//   - the kubelet accepts cgroup v1 if the host uses it
//   - kube-controller-manager starts sooner: with its own limit on requests it
//     takes five seconds to start the controllers of a new cluster, and with its
//     own period between attempts to lead it comes up to four seconds late
//
// Settings that the configuration contains take precedence.
func kubeadm(args []string) int { return Kubeadm(node.KubeProgram, args) }

// Kubeadm runs the kubeadm that is part of a program. Servers of their own, on which the settings
// above fit as well, run it from another place.
func Kubeadm(program string, args []string) int {
	h := traits{cgroups: hostCgroups(), nftables: hasNftables()}
	patched, err := patchArguments(args, h)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubeadm on a local machine:", err)
		return codeFailed
	}
	if slices.Contains([]string{"init", "join"}, verb(args)) {
		awaitRuntime()
	}
	if err := markFounder(args); err != nil {
		fmt.Fprintln(os.Stderr, "kubeadm on a local machine:", err)
		return codeFailed
	}
	argv := append([]string{"kubeadm"}, patched...)
	if needsProxyPatch(args) {
		return initThenPatchProxy(program, argv, h)
	}
	err = syscall.Exec(program, argv, os.Environ())
	fmt.Fprintln(os.Stderr, "kubeadm:", err)
	return codeFailed
}

// verb returns the subcommand: the first argument that is not a flag.
func verb(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

func patches(args []string) bool {
	return slices.Contains([]string{"init", "join", "reset", "upgrade"}, verb(args))
}

// patchArguments replaces the configuration file with a completed copy and skips kubeadm's check of
// cgroups.
func patchArguments(args []string, h traits) ([]string, error) {
	if name := verb(args); name != "init" && name != "join" {
		return args, nil
	}
	args = slices.Clone(args)
	for i, a := range args {
		value, joined := strings.CutPrefix(a, "--config=")
		switch {
		case joined:
			path, err := patchFile(value, h)
			if err != nil {
				return nil, err
			}
			args[i] = "--config=" + path
		case a == "--config" && i+1 < len(args):
			path, err := patchFile(args[i+1], h)
			if err != nil {
				return nil, err
			}
			args[i+1] = path
		}
	}
	if slices.Contains(args, "phase") {
		return args, nil // most phases know no such flag
	}
	return append(args, "--ignore-preflight-errors=SystemVerification,Mem,NumCPU,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables"), nil
}

func patchFile(path string, h traits) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the configuration: %w", err)
	}
	patched, err := patchConfig(data, h)
	if err != nil {
		return "", fmt.Errorf("reading the configuration %q: %w", path, err)
	}
	f, err := os.CreateTemp("/run/drover", "kubeadm-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = f.Write(patched)
	return f.Name(), errors.Join(err, f.Close())
}

// needsProxyPatch reports whether init is called with flags instead of a file, which leaves no
// place for the settings of kube-proxy.
func needsProxyPatch(args []string) bool {
	return patches(args) && verb(args) == "init" && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--config") }) &&
		!slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--dry-run") || a == "phase" })
}

// initThenPatchProxy changes the settings of kube-proxy right after kubeadm has stored them.
func initThenPatchProxy(program string, argv []string, h traits) int {
	cmd := exec.Command(program, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, "kubeadm:", err)
		return codeFailed
	}
	edit := "s/maxPerCore: null/maxPerCore: 0/"
	if h.nftables {
		edit += `;s/mode: ""/mode: ` + proxyMode + "/"
	}
	script := `export KUBECONFIG=/etc/kubernetes/admin.conf
kubectl -n kube-system get configmap kube-proxy -o yaml | sed '` + edit + `' | kubectl -n kube-system apply -f - >/dev/null 2>&1 &&
kubectl -n kube-system delete pod -l k8s-app=kube-proxy --wait=false >/dev/null`
	fix := exec.Command("sh", "-c", script)
	fix.Stderr = os.Stderr
	if err := fix.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "kubeadm on a local machine: changing the settings of kube-proxy:", err)
		return codeFailed
	}
	return 0
}

// kubeletSettings returns the kubelet settings of this machine: its share of the host's resources,
// and the cgroup version.
func kubeletSettings(s Spec, hostCPUs int, hostMemory int64, v cgroupVersion) ([]byte, error) {
	settings := map[string]any{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs"}
	if v == cgroupV1 {
		settings["failCgroupV1"] = false
	}
	if HasMappedUsers() {
		settings["featureGates"] = map[string]any{"KubeletInUserNamespace": true}
	}
	reserved := map[string]any{}
	if s.CPUs > 0 && hostCPUs > s.CPUs {
		reserved["cpu"] = fmt.Sprint(hostCPUs - s.CPUs)
	}
	if s.MemoryBytes > 0 && hostMemory > s.MemoryBytes {
		reserved["memory"] = fmt.Sprint(hostMemory - s.MemoryBytes)
	}
	if len(reserved) > 0 {
		settings["systemReserved"] = reserved
	}
	return yaml.Marshal(settings)
}

func writeKubeletSettings(s Spec) error {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return err
	}
	data, err := kubeletSettings(s, numCPU(), int64(info.Totalram)*int64(info.Unit), hostCgroups())
	if err != nil {
		return err
	}
	dir := "/etc/kubernetes/kubelet.conf.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "20-machine.conf"), data, 0o600)
}

// HasMappedUsers reports whether this process runs in a user namespace.
func HasMappedUsers() bool {
	data, err := os.ReadFile("/proc/self/uid_map")
	fields := strings.Fields(string(data))
	return err == nil && len(fields) > 1 && fields[1] != "0"
}
