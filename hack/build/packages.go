package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/kube/build"
)

// packages maps the Debian packages that a build and a machine require to files, any of which shows
// that the package is installed.
func packages() map[string][]string {
	return map[string][]string{
		"libseccomp-dev": {"/usr/include/seccomp.h"},
		"iproute2":       {"/usr/sbin/ip", "/usr/bin/ip", "/sbin/ip"},
		"nftables":       {"/usr/sbin/nft"},
		"iptables":       {"/usr/sbin/iptables", "/sbin/iptables"},
		"conntrack":      {"/usr/sbin/conntrack"},
		"ethtool":        {"/usr/sbin/ethtool", "/sbin/ethtool"},
		"socat":          {"/usr/bin/socat"},
		"kmod":           {"/usr/bin/kmod", "/bin/kmod"},
		"openssh-server": {"/usr/sbin/sshd"},
		"procps":         {"/usr/bin/ps", "/bin/ps"},
		"curl":           {"/usr/bin/curl"},
		"jq":             {"/usr/bin/jq"},
		"iputils-ping":   {"/usr/bin/ping", "/bin/ping"},
	}
}

// browserPackages are what tests of the page in a browser require besides.
func browserPackages() map[string][]string {
	return map[string][]string{"chromium": {"/usr/bin/chromium", "/usr/bin/google-chrome"}}
}

// browserJobs install the browser of tests.
func (o options) browserJobs(context.Context) ([]build.Job, error) {
	if slices.Contains(o.targets, "node") {
		return nil, nil // its job installs all packages, because apt-get runs once at a time
	}
	return []build.Job{{
		Label: "Debian packages",
		Fetch: func(ctx context.Context, _ *build.Task) error { return o.ensurePackages(ctx, browserPackages()) },
	}}, nil
}

// nodePackages are the packages that the targets require.
func (o options) nodePackages() map[string][]string {
	all := packages()
	if slices.Contains(o.targets, "browser") {
		maps.Copy(all, browserPackages())
	}
	return all
}

// missing lists the packages that are not installed.
func missing(packages map[string][]string, exists func(path string) bool) []string {
	var names []string
	for name, files := range packages {
		if !slices.ContainsFunc(files, exists) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ensurePackages installs missing packages, or fails with the command that does.
func (o options) ensurePackages(ctx context.Context, packages map[string][]string) error {
	names := missing(packages, func(path string) bool { _, err := os.Stat(path); return err == nil })
	if len(names) == 0 {
		return nil
	}
	command := append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, names...)
	if _, err := exec.LookPath("apt-get"); err != nil || !o.install {
		return fmt.Errorf("missing packages: %s; install them, on Debian and Ubuntu with \"%s\" as root",
			strings.Join(names, ", "), strings.Join(command, " "))
	}
	o.progress.Print("Installing %s", strings.Join(names, ", "))
	// A new machine has no package lists, and old lists name files that no longer exist.
	update := execute(ctx, "apt-get", "update")
	if err := execute(ctx, command...); err != nil {
		return errors.Join(err, update)
	}
	return nil
}

func execute(ctx context.Context, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	// Servers are installed only to be copied into machines and must not start here.
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running %q: %w:\n%s", strings.Join(command, " "), err, lastLines(string(out)))
	}
	return nil
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
