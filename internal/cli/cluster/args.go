package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The name under which Drover may be installed as a plugin of eksctl, and the subcommand of the
// plugin.
const (
	pluginName = "eksctl-anywhere"
	pluginWord = "anywhere"
)

// Args returns the arguments of the program as Drover's commands parse them. Called as
// eksctl-anywhere, or with anywhere as the first word, Drover accepts the flags and variables of
// that tool as well. -mc FILE is always an alias of --kubeconfig FILE.
func Args(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	args := slices.Clone(argv[1:])
	plugin := filepath.Base(argv[0]) == pluginName
	if len(args) > 0 && args[0] == pluginWord {
		args, plugin = args[1:], true
	}
	if plugin {
		args = withoutVerbosity(args)
	}
	if !changesCluster(args) {
		return args
	}
	if plugin {
		args = withEnvironment(args, os.LookupEnv)
	}
	for i, a := range args {
		switch file, given := strings.CutPrefix(a, "-mc="); {
		case a == "-mc":
			args[i] = "--kubeconfig"
		case given:
			args[i] = "--kubeconfig=" + file
		}
	}
	return args
}

// changesCluster reports whether the command is create, upgrade or delete cluster.
func changesCluster(args []string) bool {
	i := slices.IndexFunc(args, func(a string) bool { return a == "create" || a == "upgrade" || a == "delete" })
	return i == 0 && slices.ContainsFunc(args[1:], func(a string) bool { return a == "cluster" || a == "clusters" })
}

// withoutVerbosity removes the flag of the other tool's log level.
func withoutVerbosity(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case (a == "-v" || a == "--verbosity") && i+1 < len(args):
			i++
		case strings.HasPrefix(a, "--verbosity="), strings.HasPrefix(a, "-v") && len(a) == 3 && a[2] >= '0' && a[2] <= '9':
		default:
			out = append(out, a)
		}
	}
	return out
}
