package cluster

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/model/spec"
)

// mirrorCAVariable names the file with the certificate of a registry mirror, where the spec does not have it.
const mirrorCAVariable = "EKSA_REGISTRY_MIRROR_CA"

// limits are the flags that only commands have which wait for machines.
var limits = []string{"control-plane-wait-timeout", "per-machine-wait-timeout", "no-timeouts", "skip-validations"}

// withEnvironment adds flags that the other tool also takes from variables, such as HARDWARE_CSV for --hardware-csv. What is typed counts
// more. KUBECONFIG is none of them: it says where the management cluster of a workload cluster is, and makes no cluster one.
func withEnvironment(args []string, lookup func(string) (string, bool)) []string {
	flags := slices.Sorted(maps.Keys(without))
	if args[0] != "delete" && !slices.Contains(args, "plan") {
		flags = append(flags, limits...)
	}
	if !named(args) {
		flags = append(flags, "filename")
	}
	for _, flag := range flags {
		value, set := lookup(strings.ToUpper(strings.ReplaceAll(flag, "-", "_")))
		if set && value != "" && !typed(args, flag) {
			args = append(args, "--"+flag+"="+value)
		}
	}
	return args
}

// typed says whether a flag is among the arguments.
func typed(args []string, flag string) bool {
	short := map[string]string{"filename": "-f", "hardware-csv": "-z", "w-config": "-w"}[flag]
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "--"+flag || strings.HasPrefix(a, "--"+flag+"=") || short != "" && strings.HasPrefix(a, short)
	})
}

// named says whether the cluster is told by its name, right behind the word.
func named(args []string) bool {
	i := slices.IndexFunc(args, func(a string) bool { return a == "cluster" || a == "clusters" })
	return i >= 0 && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
}

// fill puts into a spec what is in files that the environment names.
func fill(config *spec.Config) error {
	mirror, file := config.Cluster.Spec.RegistryMirrorConfiguration, os.Getenv(mirrorCAVariable)
	if mirror == nil || mirror.CACertContent != "" || file == "" {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the certificate of the registry mirror, which %s names: %w", mirrorCAVariable, err)
	}
	mirror.CACertContent = string(content)
	return nil
}
