package kubeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Connect returns the connection of the current context of a file. An empty name stands for the
// files that $KUBECONFIG names, or else for the one in the home directory of the user.
//
// Unlike the loaders of client-go, it never falls back to the configuration of a Pod or to a local
// address: a command that changes clusters must not change others than the file names.
func Connect(file string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	names := strings.Join(rules.GetLoadingPrecedence(), string(filepath.ListSeparator))
	if !slices.ContainsFunc(rules.GetLoadingPrecedence(), exists) {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", names, fs.ErrNotExist)
	}
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", names, err)
	}
	if err := usable(config); err != nil {
		return nil, fmt.Errorf("kubeconfig %q %w", names, err)
	}
	connection, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %q: %w", names, err)
	}
	return connection, nil
}

// exists reports whether a file may exist, so that reading it returns its content or says why not.
func exists(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// usable reports what a kubeconfig lacks to connect to a cluster. The error continues a sentence
// that starts with the file.
func usable(config *clientcmdapi.Config) error {
	if clientcmdapi.IsConfigEmpty(config) {
		return errors.New("is empty")
	}
	if config.CurrentContext == "" {
		return errors.New("has no current context")
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return fmt.Errorf("lacks its current context %q", config.CurrentContext)
	}
	cluster := config.Clusters[current.Cluster]
	if cluster == nil {
		return fmt.Errorf("lacks cluster %q of its current context %q", current.Cluster, config.CurrentContext)
	}
	if cluster.Server == "" {
		return fmt.Errorf("has no server for cluster %q", current.Cluster)
	}
	if current.AuthInfo != "" && config.AuthInfos[current.AuthInfo] == nil {
		return fmt.Errorf("lacks user %q of its current context %q", current.AuthInfo, config.CurrentContext)
	}
	return nil
}
