// Package management finds the management plane that a command is about: that of --kubeconfig, of $KUBECONFIG, or the one in $DROVER_HOME.
package management

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/plane"
)

// Flags say which plane is meant.
type Flags struct{ Kubeconfig string }

// Add puts the flag on a command.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.Kubeconfig, "kubeconfig", "k", "", "kubeconfig `file` of the management plane")
}

// Flag is the flag as it was typed, to be appended to a suggested command. It is empty if it was not.
func (f *Flags) Flag() string {
	if f.Kubeconfig == "" {
		return ""
	}
	return " --kubeconfig " + f.Kubeconfig
}

// Namespace is the one that the kubeconfig names, if it does.
func (f *Flags) Namespace() string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	config, err := rules.Load()
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return ""
	}
	return config.Contexts[config.CurrentContext].Namespace
}

// Config is how to reach the plane.
func (f *Flags) Config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	if f.Kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		home := plane.Home{Dir: plane.DefaultHome()}
		if _, err := os.Stat(home.Kubeconfig()); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no management plane in home %q: run `drover up`, or name one with --kubeconfig", home.Dir)
		}
		rules.ExplicitPath = home.Kubeconfig()
	}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the management plane: %w", err)
	}
	return cfg, nil
}
