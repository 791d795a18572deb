package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/drover-dev/drover/internal/kube/node/host"
)

const (
	// kubeNamespace is containerd's namespace for the kubelet.
	kubeNamespace = "k8s.io"
	startTimeout  = 30 * time.Second
)

// fillStore runs containerd on an empty directory, imports the archive and stops containerd. The
// result is a store with all images unpacked that any containerd can start with.
func (b Builder) fillStore(ctx context.Context, dir, archive string) error {
	// Not below dir, since the path of a socket is limited.
	run, err := os.MkdirTemp("", "drover-store-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(run)
	stop, err := b.startContainerd(ctx, dir, run)
	if err != nil {
		return err
	}
	err = b.importImages(ctx, run, archive)
	return errors.Join(err, stop())
}

func (b Builder) startContainerd(ctx context.Context, dir, run string) (stop func() error, err error) {
	config := filepath.Join(run, "config.toml")
	err = os.WriteFile(config, fmt.Appendf(nil, storeConfig, dir, filepath.Join(run, "state"), filepath.Join(run, "sock")), 0o600)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(run, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, b.Programs.Path(Containerd), "--config", config)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		return os.RemoveAll(filepath.Join(dir, "opt"))
	}
	if err := b.awaitContainerd(ctx, run); err != nil {
		_ = stop()
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w; output of containerd:\n%s", err, tail(string(said), 10))
	}
	return stop, nil
}

const storeConfig = `version = 3
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt"]
[grpc]
  address = %q
`

func (b Builder) awaitContainerd(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := b.ctr(ctx, run, "version")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for containerd: %w", err)
		case <-tick.C:
		}
	}
}

func (b Builder) importImages(ctx context.Context, run, archive string) error {
	if out, err := b.ctr(ctx, run, "images", "import", archive); err != nil {
		return fmt.Errorf("importing %q: %w: %s", filepath.Base(archive), err, tail(out, 10))
	}
	return nil
}

func (b Builder) ctr(ctx context.Context, run string, args ...string) (string, error) {
	args = append([]string{"--address", filepath.Join(run, "sock"), "--namespace", kubeNamespace}, args...)
	out, err := exec.CommandContext(ctx, b.Programs.Path(Ctr), args...).CombinedOutput()
	return string(out), err
}

// shareFiles replaces large files in a store with hard links to the cache. That saves disk, memory
// and time on every machine: its kubelet and its containers run the same file, whose pages are
// loaded once.
func (b Builder) shareFiles(store string) error {
	for name, from := range map[string]string{
		"usr/local/bin/kube": b.Kube.Path, CoreDNS: b.Programs.Path(CoreDNS), Network: b.Programs.Path(Network), Pause: b.Programs.Path(Pause),
	} {
		unpacked, err := filepath.Glob(filepath.Join(store, "*", "snapshots", "*", "fs", name))
		if err != nil {
			return err
		}
		if len(unpacked) == 0 {
			return fmt.Errorf("%q is in no image", name)
		}
		for _, to := range unpacked {
			temp := to + ".shared"
			if err := errors.Join(linkOrCopy(from, temp), os.Rename(temp, to)); err != nil {
				return err
			}
		}
	}
	return nil
}

// CopyStore copies the store for a machine to dir, which must not exist. Blobs and unpacked files
// never change, so the copy shares them with the image; databases are copied.
func (i Image) CopyStore(dir string) error {
	src := filepath.Join(i.Dir, storeDir)
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := dir + strings.TrimPrefix(path, src)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return errors.Join(os.Mkdir(to, 0o700), os.Chmod(to, info.Mode()))
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(target, to))
		case immutable(path):
			return linkOrCopy(path, to)
		case info.Mode().IsRegular():
			return host.CopyFile(path, to, info.Mode())
		}
		return nil
	})
}

func immutable(path string) bool {
	return strings.Contains(path, "/blobs/") || strings.Contains(path, "/snapshots/")
}

// tail returns the end of a text for an error.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
