package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The name that this program may be installed under, as a plugin of another tool, and the word by which that calls it.
const (
	pluginName = "eksctl-anywhere"
	pluginWord = "anywhere"
)

// Args are the arguments of the program as Drover's commands read them. They answer also under the name of another tool, eksctl-anywhere, or
// behind the word anywhere, and then to its variables too; -mc FILE is another way to write --kubeconfig FILE.
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

// changesCluster says that the command is one of create, upgrade and delete cluster.
func changesCluster(args []string) bool {
	i := slices.IndexFunc(args, func(a string) bool { return a == "create" || a == "upgrade" || a == "delete" })
	return i == 0 && slices.ContainsFunc(args[1:], func(a string) bool { return a == "cluster" || a == "clusters" })
}

// withoutVerbosity leaves out how much another tool would log.
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
