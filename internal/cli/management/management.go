// Package management finds the management plane of a command: that of --kubeconfig, of $KUBECONFIG,
// or the one in $DROVER_HOME. Start with Flags.
package management

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/operate/kubeconfig"
	"github.com/drover-dev/drover/internal/plane"
)

// Flags selects a management plane.
type Flags struct{ Kubeconfig string }

// Add adds the flag to a command.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.Kubeconfig, "kubeconfig", "k", "", "kubeconfig `file` of the management plane")
}

// Flag returns the flag as it was typed, for suggested commands, or "".
func (f *Flags) Flag() string {
	if f.Kubeconfig == "" {
		return ""
	}
	return " --kubeconfig " + f.Kubeconfig
}

// Namespace returns the namespace of the kubeconfig's context, or "".
func (f *Flags) Namespace() string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	config, err := rules.Load()
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return ""
	}
	return config.Contexts[config.CurrentContext].Namespace
}

// Config returns the connection to the management plane.
func (f *Flags) Config() (*rest.Config, error) {
	file := f.Kubeconfig
	if file == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		home := plane.Home{Dir: plane.DefaultHome()}
		if _, err := os.Stat(home.Kubeconfig()); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("no management plane in %q: run `drover up`, or name a kubeconfig with --kubeconfig", home.Dir)
		}
		file = home.Kubeconfig()
	}
	config, err := kubeconfig.Connect(file)
	if err != nil {
		return nil, fmt.Errorf("connecting to the management plane: %w: name its kubeconfig with --kubeconfig", err)
	}
	return config, nil
}
