package cluster

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/model/spec"
)

// mirrorCAVariable has the file of a registry mirror's certificate, if the spec has none.
const mirrorCAVariable = "EKSA_REGISTRY_MIRROR_CA"

// limits are the flags of commands that wait for machines.
var limits = []string{"control-plane-wait-timeout", "per-machine-wait-timeout", "no-timeouts", "skip-validations"}

// withEnvironment adds the flags that the other tool also reads from variables, such as
// HARDWARE_CSV for --hardware-csv. Flags on the command line take precedence. KUBECONFIG is not
// among them: it locates the management cluster of a workload cluster, but turns no cluster into
// one.
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

// typed reports whether a flag is among the arguments.
func typed(args []string, flag string) bool {
	short := map[string]string{"filename": "-f", "hardware-csv": "-z", "w-config": "-w"}[flag]
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "--"+flag || strings.HasPrefix(a, "--"+flag+"=") || short != "" && strings.HasPrefix(a, short)
	})
}

// named reports whether the argument after "cluster" is a name.
func named(args []string) bool {
	i := slices.IndexFunc(args, func(a string) bool { return a == "cluster" || a == "clusters" })
	return i >= 0 && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
}

// fill adds the contents of files that the environment names to a spec.
func fill(config *spec.Config) error {
	mirror, file := config.Cluster.Spec.RegistryMirrorConfiguration, os.Getenv(mirrorCAVariable)
	if mirror == nil || mirror.CACertContent != "" || file == "" {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the certificate of the registry mirror from %s: %w", mirrorCAVariable, err)
	}
	mirror.CACertContent = string(content)
	return nil
}
