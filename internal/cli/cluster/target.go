package cluster

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

// completeRole decides whether a cluster is a workload or a management cluster if its spec does not
// say: --kubeconfig means a workload cluster. It rejects a spec that contradicts the flag.
func completeRole(config *spec.Config, verb lifecycle.Verb, kubeconfig string) error {
	c := config.Cluster
	specified := c.Spec.Management != nil || c.Spec.ManagementCluster.Name != ""
	switch {
	case kubeconfig == "":
	case !specified:
		c.Spec.Management = ptr.To(false)
	case verb == lifecycle.Create && c.IsSelfManaged():
		return ui.Usagef("the spec of %q is that of a management cluster, which conflicts with --kubeconfig: omit the flag, or set \"management: false\" in the spec to create a workload cluster", c.Name)
	}
	return nil
}

// planner returns what plans the changes of a cluster.
func (c *change) planner(config *spec.Config) (lifecycle.Planner, error) {
	if config.Cluster.IsManaged() {
		return c.workload(config)
	}
	return c.management(config)
}

// plane finds the management plane of a workload cluster: that of --kubeconfig, of $KUBECONFIG, of
// the file that the creation of the management cluster wrote here, or the one in $DROVER_HOME.
func (c *change) plane(config *spec.Config) (*rest.Config, string, error) {
	flags := management.Flags{Kubeconfig: c.kubeconfig}
	if by := config.Cluster.ManagedBy(); flags.Kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" && by != "" {
		file := lifecycle.Files{Cluster: by}.Kubeconfig()
		if _, err := os.Stat(file); err == nil {
			flags.Kubeconfig = file
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

// workload returns the planner of a workload cluster.
func (c *change) workload(config *spec.Config) (lifecycle.Planner, error) {
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

// files returns the files of a cluster in the working directory.
func files(cluster string) lifecycle.Files {
	dir, err := filepath.Abs(".")
	if err != nil {
		dir = "."
	}
	return lifecycle.Files{Dir: dir, Cluster: cluster}
}
