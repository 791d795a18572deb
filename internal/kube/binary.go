// Package kube finds the Kubernetes that Drover runs: one multi-call binary with etcd, the control
// plane, kubelet, kubeadm and kubectl. It locates the binary and starts programs from it. It never
// builds one (see package build) and never decides what runs (see package plane). Start at [Find].
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Programs are the names under which the binary can be called.
func Programs() []string {
	return []string{
		"etcd", "etcdutl", "kube-apiserver", "kube-controller-manager", "kube-proxy",
		"kube-scheduler", "kubeadm", "kubectl", "kubelet",
	}
}

// Binary is a multi-call Kubernetes binary of a known version.
type Binary struct {
	Path    string
	Version string
}

// Command prepares to run one of the Programs, as exec.CommandContext does.
func (b Binary) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, b.Path, args...)
	cmd.Args[0] = program
	return cmd
}

// Probe runs the binary to get its version instead of trusting its manifest.
func (b Binary) Probe(ctx context.Context) (string, error) {
	cmd := b.Command(ctx, "kubectl", "version", "--client", "--output=json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("reading the version of %q: %w: %s", b.Path, err, strings.TrimSpace(stderr.String()))
	}
	var answer struct {
		ClientVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.ClientVersion.GitVersion == "" {
		return "", fmt.Errorf("reading the version of %q: not a Kubernetes binary built by Drover", b.Path)
	}
	return answer.ClientVersion.GitVersion, nil
}

// Link creates a symbolic link in dir for each of the Programs, for callers that need separate
// files, such as envtest and shells. target is the binary, relative to dir or absolute.
func Link(dir, target string) error {
	for _, program := range Programs() {
		err := os.Symlink(target, filepath.Join(dir, program))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
