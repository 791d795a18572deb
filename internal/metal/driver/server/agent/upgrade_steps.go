package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
	"github.com/drover-dev/drover/internal/metal/remote"
)

// blob returns the path of a blob, which may have been torn by a loss of power.
func blob(digest string) (string, error) {
	file := filepath.Join(Blobs, digest)
	have, err := remote.Digest(file)
	if err == nil && have != digest {
		err = fmt.Errorf("%q is damaged", file)
	}
	return file, err
}

// installNext puts the multi-call binary beside the one that is in use, under all names that
// kubeadm upgrade needs.
func (a *agent) installNext(_ context.Context, u Upgrade) error {
	file, err := blob(u.Kube)
	if err != nil {
		return err
	}
	if err := a.place(nextKube, file); err != nil {
		return err
	}
	for _, name := range []string{"kubeadm", "kubelet", "kubectl"} {
		if err := a.link(filepath.Join(nextDir, name), "kube"); err != nil {
			return err
		}
	}
	return a.expectVersion(filepath.Join(nextDir, "kubelet"), u.Version)
}

// expectVersion checks the version of a kubelet.
func (a *agent) expectVersion(program, version string) error {
	if have := versionOf(a.engine, program); have != version {
		return fmt.Errorf("%q has version %q instead of %q", program, have, version)
	}
	return nil
}

// versionOf returns the version of a kubelet, or "" if there is none.
func versionOf(e *guest.Engine, program string) string {
	out, err := e.Output(program, "--version")
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimSpace(out), "Kubernetes ")
}

func (a *agent) importNext(_ context.Context, u Upgrade) error {
	file, err := blob(u.Images)
	if err != nil {
		return err
	}
	return a.output("/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "import", file)
}

// upgradeScript is the beginning of the script. The lock ends with the shell that has it: one that
// outlived its agent is waited for. So is the API server, which a reboot may have stopped.
const upgradeScript = `
version=$1
next=` + nextDir + `
mkdir -p /run/drover
exec 9>/run/drover/upgrade.lock
flock 9
for _ in $(seq 150); do
  "$next/kubectl" --kubeconfig /etc/kubernetes/kubelet.conf get --raw /readyz >/dev/null 2>&1 9>&- && break
  sleep 2 9>&-
done
`

func (a *agent) upgradeNode(_ context.Context, u Upgrade) error {
	return a.output("bash", "-euc", upgradeScript+guest.KubeadmUpgrade, "upgrade", u.Version)
}

// switchKubelet lets the kubelet run the new program. Containers keep running.
func (a *agent) switchKubelet(ctx context.Context, u Upgrade) error {
	file, err := blob(u.Kube)
	if err != nil {
		return err
	}
	if err := a.place(node.ServerKubeProgram, file); err != nil {
		return err
	}
	if err := a.expectVersion(kubeletProgram, u.Version); err != nil {
		return err
	}
	if err := a.output("systemctl", "restart", "kubelet"); err != nil {
		return err
	}
	return a.awaitSteady(ctx)
}

const (
	kubeletProgram = "/usr/local/bin/kubelet"
	// steadyFor is how long a kubelet must run, since one that fails is restarted after two seconds.
	steadyFor     = 5 * time.Second
	steadyTimeout = time.Minute
)

// awaitSteady waits until the kubelet has been active for some time.
func (a *agent) awaitSteady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, steadyTimeout)
	defer cancel()
	for since := time.Now(); time.Since(since) < steadyFor; {
		if !runsKubelet(a.engine) {
			since = time.Now()
		}
		select {
		case <-ctx.Done():
			return errors.New("the kubelet doesn't stay active: `journalctl -u kubelet` on the server shows why")
		case <-time.After(time.Second):
		}
	}
	return nil
}

func runsKubelet(e *guest.Engine) bool {
	out, _ := e.Output("systemctl", "is-active", "kubelet")
	return strings.TrimSpace(out) == "active"
}

// output runs a program whose last lines are its error.
func (a *agent) output(argv ...string) error {
	out, err := a.engine.Output(argv...)
	a.engine.Printf("%s", out)
	if out = strings.TrimSpace(out); err == nil || out == "" {
		return err
	}
	lines := strings.Split(out, "\n")
	return fmt.Errorf("%s failed: %s", filepath.Base(argv[0]), strings.Join(lines[max(0, len(lines)-15):], "\n"))
}

// freeDisk returns what is left where programs and images are.
func freeDisk() int64 {
	free := int64(-1)
	for _, dir := range []string{node.ServerDir, "/var/lib"} {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) != nil {
			continue
		}
		if n := int64(fs.Bavail) * fs.Bsize; free < 0 || n < free {
			free = n
		}
	}
	return max(free, 0)
}
