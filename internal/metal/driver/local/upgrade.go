package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/internal/base/text"
	"github.com/drover-dev/drover/internal/kube/node"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// upgradeTimeout bounds an upgrade. Kubeadm waits up to five minutes for each component.
const upgradeTimeout = 30 * time.Minute

// upgradeStep is a step of an upgrade: a script that a machine runs as root, with the version as
// its first argument.
type upgradeStep struct {
	event, message string
	script         string
	// input is what the script reads; its size is the second argument.
	input string
}

// Upgrade implements driver.Upgrader. The machine keeps its root file system and its image store,
// and gets the program and the images of another version. A process of a killed driver may still
// work on the machine, so scripts take turns and replace files only when they are complete.
func (d *Driver) Upgrade(ctx context.Context, want driver.Machine, version string) error {
	m, err := d.machine(want.ID)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, upgradeTimeout)
	defer cancel()
	if err := d.script(ctx, m, upgradeStep{script: isUpgraded}, version); err == nil {
		return nil
	} else if _, running := m.process(); !running {
		return err
	}
	builder, err := node.NewBuilder(version, d.log)
	if err != nil {
		return err
	}
	images, err := os.MkdirTemp(d.home, "upgrade-")
	if err != nil {
		return fmt.Errorf("creating a directory for images: %w", err)
	}
	defer os.RemoveAll(images)
	archive := filepath.Join(images, "images.tar")
	if err := builder.Archive(ctx, archive); err != nil {
		return fmt.Errorf("packing the images of Kubernetes %s: %w", version, err)
	}
	for _, step := range []upgradeStep{
		{"upgrade.101", "Installing the programs of Kubernetes " + version, installProgram, builder.Kube.Path},
		{"upgrade.102", "Importing the images of Kubernetes " + version, importArchive, archive},
		{"upgrade.103", "Running kubeadm upgrade", guest.KubeadmUpgrade, ""},
		{"upgrade.104", "Restarting the kubelet", switchProgram, ""},
	} {
		m.report(driver.Event{Type: step.event, Message: step.message})
		if err := d.script(ctx, m, step, version); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(step.message[:1])+step.message[1:], err)
		}
	}
	return nil
}

// script runs a step in a machine.
func (d *Driver) script(ctx context.Context, m *machine, step upgradeStep, version string) error {
	argv := []string{"/bin/bash", "-euc", upgradePrelude + step.script, "upgrade", version}
	var in io.Reader
	if step.input != "" {
		f, err := os.Open(step.input)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		in, argv = f, append(argv, strconv.FormatInt(info.Size(), 10))
	}
	out := &bytes.Buffer{}
	err := d.Enter(ctx, m.id, argv, driver.Stdio{In: in, Out: out, Err: out})
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return fmt.Errorf("%w: %s", err, text.TruncateTo(lastLines(out.String(), 15), 2000))
}

func lastLines(output string, n int) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// upgradePrelude is the beginning of every script. The lock ends with the shell that has it.
const upgradePrelude = `
version=$1
home=/usr/lib/drover
next=$home/next
mkdir -p /run/drover /var/lib/drover "$next"
exec 9>/run/drover/upgrade.lock
flock 9
receive() { # FILE SIZE
  rm -f "$1".part.*
  part=$1.part.$$
  cat > "$part" 9>&-
  if [ "$(stat -c %s "$part")" != "$2" ]; then rm -f "$part"; echo "the transfer was interrupted"; exit 1; fi
  mv -f "$part" "$1"
}
`

// isUpgraded succeeds on a machine that has the version.
const isUpgraded = `
[ "$(cat /var/lib/drover/upgraded 2>/dev/null)" = "$version" ] || exit 1
[ "$(systemctl is-active kubelet 9>&-)" = active ]
`

// installProgram puts the multi-call binary beside the one that is in use, under all names that
// kubeadm upgrade needs.
const installProgram = `
receive "$next/kube" "$2"
chmod 755 "$next/kube"
for name in kubeadm kubelet kubectl; do ln -sfn kube "$next/$name"; done
[ "$("$next/kubelet" --version 9>&-)" = "Kubernetes $version" ]
`

const importArchive = `
receive /var/lib/containerd/upgrade.tar "$2"
ctr --namespace k8s.io images import --no-unpack /var/lib/containerd/upgrade.tar 9>&-
rm -f /var/lib/containerd/upgrade.tar
`

// switchProgram lets the kubelet run the new program. The links to it in /usr/bin stay.
const switchProgram = `
if [ -e "$next/kube" ]; then mv -f "$next/kube" "$home/kube"; fi
rm -rf "$next"
[ "$(kubelet --version 9>&-)" = "Kubernetes $version" ]
systemctl restart kubelet 9>&-
[ "$(systemctl is-active kubelet 9>&-)" = active ]
echo "$version" > /var/lib/drover/upgraded.part
mv -f /var/lib/drover/upgraded.part /var/lib/drover/upgraded
`
