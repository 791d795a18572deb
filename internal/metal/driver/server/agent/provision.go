package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
	"github.com/drover-dev/drover/internal/metal/userdata"
)

// provision makes the server what its specification says. It may be killed at any time and
// continues then. Userdata that was interrupted is executed again, after what kubeadm did has been
// undone.
func provision(ctx context.Context, _ []string) error {
	a, err := open(ctx)
	if err != nil {
		return err
	}
	defer a.release()
	if a.state.Phase == Installing {
		if err := a.install(ctx); err != nil {
			a.engine.Report(guest.Event{Type: "provisioning.retry", Message: err.Error()})
			return err
		}
	}
	if a.state.Phase == Executing {
		if err := a.execute(); err != nil {
			return err
		}
	}
	// Not --now: the unit is this process.
	return a.engine.Run("systemctl", "disable", Unit)
}

// step reports progress.
func (a *agent) step(percent int, kind, message string) {
	a.engine.Report(guest.Event{Phase: string(driver.Provisioning), Percent: percent, Type: kind, Message: message})
}

func (a *agent) install(ctx context.Context) error {
	a.step(40, "provisioning.104", "Connected to the server")
	if err := a.rename(a.spec.Hostname); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := a.installFiles(); err != nil {
		return err
	}
	if err := a.authorize(); err != nil {
		return fmt.Errorf("authorizing SSH keys: %w", err)
	}
	a.step(60, "provisioning.106", "Programs of the node installed")
	a.loadSettings()
	if err := a.startRuntime(ctx); err != nil {
		return err
	}
	a.step(80, "provisioning.108", "Container images imported")
	if err := a.enter(Executing); err != nil {
		return err
	}
	a.engine.Report(guest.Event{Phase: string(driver.Running), Percent: 100, Type: "provisioning.110", Message: "Device phoned home and is ready to go"})
	return nil
}

func (a *agent) authorize() error {
	if len(a.spec.SSHKeys) == 0 {
		return nil
	}
	if err := a.journal.protect(keysFile); err != nil {
		return err
	}
	return guest.AuthorizeRoot(a.spec.SSHKeys)
}

// loadSettings loads kernel modules and settings. Where the kernel has them built in, or the server
// is a container, that fails and isn't needed; kubeadm checks what is.
func (a *agent) loadSettings() {
	for _, argv := range [][]string{{"modprobe", "overlay"}, {"modprobe", "br_netfilter"}, {"sysctl", "--quiet", "--load", "/etc/sysctl.d/90-drover.conf"}} {
		if err := a.engine.Run(argv...); err != nil {
			a.engine.Printf("%v", err)
		}
	}
}

// startRuntime starts containerd and imports the images.
func (a *agent) startRuntime(ctx context.Context) error {
	for _, argv := range [][]string{
		{"systemctl", "daemon-reload"},
		{"systemctl", "enable", "containerd", "kubelet", "drover-endpoint", "drover-addresses"},
		{"systemctl", "restart", "containerd"},
	} {
		if err := a.engine.Run(argv...); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/run/drover", "/run/cluster-api"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if a.spec.Endpoint.IsValid() {
		if err := a.engine.Run("systemctl", "restart", "drover-endpoint"); err != nil {
			return err
		}
	}
	if err := a.engine.AwaitRuntime(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return a.engine.Run("/usr/local/bin/ctr", "--namespace", "k8s.io", "images", "import", filepath.Join(Blobs, a.spec.Images))
}

// startedFile marks that the userdata has begun.
const startedFile = "userdata-started"

// execute executes the userdata and records that it is over, whatever its result.
func (a *agent) execute() error {
	plan, err := userdata.Parse(a.spec.Userdata, a.spec.Variables)
	if err != nil {
		return a.finish(err)
	}
	if err := a.protectPlan(plan); err != nil {
		return err
	}
	if _, err := os.Stat(path(startedFile)); err == nil {
		a.engine.Report(guest.Event{Type: guest.UserState, Message: "running: the userdata was interrupted, starting again"})
		a.undoKubeadm()
	}
	if err := os.WriteFile(path(startedFile), []byte(time.Now().UTC().Format(time.RFC3339)), 0o600); err != nil {
		return err
	}
	a.engine.Report(guest.Event{Type: guest.UserState, Message: "running: executing the userdata"})
	return a.finish(a.engine.Execute(plan))
}

// finish deletes the userdata, which has keys, and ends the provisioning.
func (a *agent) finish(result error) error {
	a.spec.Userdata, a.spec.Variables = nil, nil
	if err := writeJSON(specFile, a.spec); err != nil {
		return err
	}
	a.engine.ReportUserdata(result)
	return a.enter(Done)
}

// undoKubeadm removes a half-made node.
func (a *agent) undoKubeadm() {
	if err := a.engine.Run("timeout", "90", "/usr/local/bin/kubeadm", "reset", "--force"); err != nil {
		a.engine.Printf("%v", err)
	}
	for _, dir := range []string{"/var/lib/etcd", "/var/lib/kubelet/pki", "/run/cluster-api"} {
		if err := empty(dir); err != nil {
			a.engine.Printf("%v", err)
		}
	}
}

// protectPlan records the files that userdata is going to change.
func (a *agent) protectPlan(p userdata.Plan) error {
	var paths []string
	for _, f := range p.Files {
		paths = append(paths, filepath.Clean(f.Path))
	}
	if len(p.Groups)+len(p.Users) > 0 {
		paths = append(paths, "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/sudoers.d/90-cloud-init-users")
		for _, u := range p.Users {
			if u.Home == "" && !u.NoHome {
				paths = append(paths, "/home/"+u.Name)
			}
		}
	}
	if len(p.RootKeys) > 0 {
		paths = append(paths, keysFile)
	}
	if p.Timezone != "" {
		paths = append(paths, "/etc/timezone")
	}
	if len(p.Certs) > 0 {
		paths = append(paths, "/etc/ssl/certs/ca-certificates.crt")
	}
	paths = append(paths, "/var/log/cloud-init-output.log", "/var/lib/cloud/instance/scripts/runcmd", "/var/lib/cloud/instance/scripts/bootcmd")
	for _, s := range p.Scripts {
		paths = append(paths, filepath.Join("/var/lib/cloud/instance/scripts", s.Name))
	}
	var err error
	for _, p := range paths {
		err = errors.Join(err, a.journal.protect(p))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("recording the files of the userdata: %w", err)
	}
	return err
}
