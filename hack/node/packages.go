package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// packages are what a build and a machine take from Debian, each with a file
// that shows that it is there.
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

// missing lists the packages of which no file is there.
func missing(exists func(path string) bool) []string {
	var names []string
	for name, files := range packages() {
		if !slices.ContainsFunc(files, exists) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ensurePackages installs what is missing, or says what to install.
func (o options) ensurePackages(ctx context.Context) error {
	names := missing(func(path string) bool { _, err := os.Stat(path); return err == nil })
	if len(names) == 0 {
		return nil
	}
	command := append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, names...)
	if _, err := exec.LookPath("apt-get"); err != nil || !o.install {
		return fmt.Errorf("these packages are missing: %s; install them, on Debian and Ubuntu with \"%s\" as root",
			strings.Join(names, ", "), strings.Join(command, " "))
	}
	fmt.Fprintf(o.out, "installing %s\n", strings.Join(names, ", "))
	// A fresh machine has no lists of packages yet, and old ones name files that are gone.
	update := execute(ctx, "apt-get", "update")
	if err := execute(ctx, command...); err != nil {
		return errors.Join(err, update)
	}
	return nil
}

func execute(ctx context.Context, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	// A server that is installed to be copied into machines must not start here.
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
