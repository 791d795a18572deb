// Command upstream derives config/crd and config/webhook from the pinned Cluster API module and
// from the types in api/, and config/flux/crd from the modules that kube/flux pins.
//
// It copies nothing by hand: the go command locates the modules, so updating a version in go.mod
// and running "go generate ./config" upgrades the API. It only changes names that refer to Drover's
// own webhook service, and labels that clusterctl and the contract lookup need.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "sigs.k8s.io/cluster-api"

// provider is an upstream manager whose API Drover serves.
type provider struct {
	dir       string // below the module's root
	label     string // value of cluster.x-k8s.io/provider for clusterctl
	contracts bool   // its kinds are referenced through contract versions
}

var providers = []provider{
	{dir: "core/config", label: "cluster-api"},
	{dir: "bootstrap/kubeadm/config", label: "bootstrap-kubeadm", contracts: true},
	{dir: "controlplane/kubeadm/config", label: "control-plane-kubeadm", contracts: true},
}

func main() {
	out := flag.String("out", "config", "directory that holds crd/, webhook/ and flux/")
	flux := flag.String("flux", "kube/flux", "directory of the module that pins the Flux controllers")
	flag.Parse()
	if err := errors.Join(generate(*out), generateFlux(*flux, filepath.Join(*out, "flux/crd"))); err != nil {
		fmt.Fprintln(os.Stderr, "generating components:", err)
		os.Exit(1)
	}
}

func generate(out string) error {
	root, err := moduleDir()
	if err != nil {
		return err
	}
	if err := generateCRDs(root, filepath.Join(out, "crd")); err != nil {
		return err
	}
	return generateWebhooks(root, filepath.Join(out, "webhook"))
}

func moduleDir() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("finding module %q: %w", module, err)
	}
	return strings.TrimSpace(string(dir)), nil
}
