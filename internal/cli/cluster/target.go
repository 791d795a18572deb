package cluster

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/management"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
	"github.com/drover-dev/drover/internal/operate/inspect"
	"github.com/drover-dev/drover/internal/operate/lifecycle"
)

// roleTimeout is how long the cluster of --kubeconfig may take to say whether it is the one to
// change.
const roleTimeout = 10 * time.Second

// completeRole decides whether a cluster is a workload or a management cluster if its spec does not
// say: --kubeconfig means a workload cluster, unless it is the cluster's own. It rejects a spec
// that contradicts the flag.
func (c *change) completeRole(config *spec.Config, verb lifecycle.Verb) error {
	return completeRole(config, verb, c.kubeconfig, func() bool { return c.managesItself(config.Cluster) })
}

func completeRole(config *spec.Config, verb lifecycle.Verb, kubeconfig string, managesItself func() bool) error {
	c := config.Cluster
	specified := c.Spec.Management != nil || c.Spec.ManagementCluster.Name != ""
	switch {
	case kubeconfig == "":
	case !specified:
		if verb == lifecycle.Create || !managesItself() {
			c.Spec.Management = ptr.To(false)
		}
	case verb == lifecycle.Create && c.IsSelfManaged():
		return ui.Usagef("the spec of %q is that of a management cluster, which conflicts with --kubeconfig: omit the flag, or set \"management: false\" in the spec to create a workload cluster", c.Name)
	}
	return nil
}

// managesItself reports whether --kubeconfig belongs to the management cluster that is to be
// changed. The first phase reports a cluster that doesn't answer.
func (c *change) managesItself(cluster *anywherev1.Cluster) bool {
	ctx, cancel := context.WithTimeout(c.cmd.Context(), roleTimeout)
	defer cancel()
	plane, err := c.connect(cluster)
	if err != nil {
		return false
	}
	found, err := plane.Find(ctx, cluster.Namespace, cluster.Name)
	return err == nil && found.IsSelfManaged()
}

// connect connects to the management plane of a workload cluster, or to a management cluster.
func (c *change) connect(cluster *anywherev1.Cluster) (*inspect.Plane, error) {
	connection, _, err := c.plane(&spec.Config{Cluster: cluster})
	if err != nil {
		return nil, err
	}
	plane, err := inspect.Connect(connection)
	if err != nil {
		return nil, err
	}
	plane.Own = (&management.Flags{Kubeconfig: c.kubeconfig}).Namespace()
	return plane, nil
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
