package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
	"github.com/drover-dev/drover/internal/operate/lifecycle/workflow"
)

// isWorkload decides which of the two kinds of workflow it is: the spec says what the cluster is, and where it says nothing, --kubeconfig
// means a workload cluster. It completes a spec that says nothing.
func isWorkload(config *spec.Config, verb workflow.Verb, kubeconfig string) (bool, error) {
	c := config.Cluster
	said := c.Spec.Management != nil || c.Spec.ManagementCluster.Name != ""
	switch {
	case !said && kubeconfig != "":
		c.Spec.Management = ptr.To(false)
		return true, nil
	case c.IsManaged():
		return true, nil
	case verb == workflow.Create && kubeconfig != "":
		return false, ui.Usagef("the spec of %q is that of a management cluster, which conflicts with --kubeconfig: omit the flag, or set \"management: false\" in the spec to create a workload cluster", c.Name)
	}
	return false, nil
}

// plane finds the management plane of a workload cluster: that of --kubeconfig, of $KUBECONFIG, of the file that the creation of the
// management cluster wrote here, or the one in $DROVER_HOME.
func (c *change) plane(config *spec.Config) (*rest.Config, string, error) {
	flags := management.Flags{Kubeconfig: c.kubeconfig}
	if by := config.Cluster.ManagedBy(); flags.Kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" && by != "" {
		file := lifecycle.Files{Cluster: by}.Kubeconfig()
		if _, err := os.Stat(file); err == nil {
			flags.Kubeconfig = file
		}
	}
	if flags.Kubeconfig != "" {
		if _, err := os.Stat(flags.Kubeconfig); err != nil {
			return nil, "", fmt.Errorf("the kubeconfig of the management cluster can't be read: %w", err)
		}
	}
	found, err := flags.Config()
	if err != nil {
		return nil, "", err
	}
	from := flags.Kubeconfig
	if from == "" {
		from = "your kubeconfig"
	}
	return found, from, nil
}

// workload prepares the work on a workload cluster.
func (c *change) workload(config *spec.Config) (*lifecycle.Workload, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	plane, from, err := c.plane(config)
	if err != nil {
		return nil, err
	}
	options.Kubeconfig = from
	return &lifecycle.Workload{Options: options, Config: config, REST: plane}, nil
}

// files are those of a cluster in the working directory.
func files(cluster string) lifecycle.Files {
	dir, err := filepath.Abs(".")
	if err != nil {
		dir = "."
	}
	return lifecycle.Files{Dir: dir, Cluster: cluster}
}
