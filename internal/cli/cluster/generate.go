package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/model/spec"
)

var providers = []string{"docker", "packet"}

// starter describes the spec that generate writes.
type starter struct {
	name     string
	provider string
	// workload is set by --workload, and implied by a name in managedBy.
	workload bool
	// managedBy is the management cluster of a workload cluster. It is empty if that is whichever
	// plane the cluster is created on.
	managedBy string
}

func newGenerate(io *ui.IO) *cobra.Command {
	var s starter
	cmd := &cobra.Command{
		Use:   "clusterconfig NAME -p PROVIDER",
		Short: "Write a starter spec for a cluster",
		Long: `Write a starter spec for a cluster to standard output.

By default the spec describes a management cluster. With --workload it describes a
workload cluster of whichever management plane you create it on; with
--management-cluster, a workload cluster of the management cluster with that name.

The provider is docker for machines on this host (Docker itself is not needed), or
packet for machines behind a Packet API.`,
		Example: `  drover generate clusterconfig mgmt -p docker > mgmt.yaml
  drover generate clusterconfig one -p docker --workload > one.yaml
  drover generate clusterconfig two -p packet --management-cluster mgmt > two.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.name = args[0]
			if err := s.check(cmd.Flags()); err != nil {
				return err
			}
			_, err := fmt.Fprint(io.Out, s.text())
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&s.provider, "provider", "p", "", "where machines come from: "+strings.Join(providers, " or "))
	f.BoolVar(&s.workload, "workload", false, "write the spec of a workload cluster")
	f.StringVar(&s.managedBy, "management-cluster", "", "`name` of the management cluster; implies --workload")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(providers, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("management-cluster", cobra.NoFileCompletions)
	return cmd
}

// check rejects flags that contradict each other, and names that no cluster can have.
func (s *starter) check(flags *pflag.FlagSet) error {
	managed := flags.Changed("management-cluster")
	switch {
	case !slices.Contains(providers, s.provider):
		return ui.Usagef("--provider %q is not supported: use one of %s", s.provider, strings.Join(providers, ", "))
	case managed && s.managedBy == "":
		return ui.Usagef("--management-cluster requires the name of a cluster")
	case managed && s.managedBy == s.name:
		return ui.Usagef("--management-cluster %q is the cluster itself: omit the flag to write the spec of a management cluster", s.name)
	case managed && flags.Changed("workload") && !s.workload:
		return ui.Usagef("--workload=false conflicts with --management-cluster %q: omit one of them", s.managedBy)
	}
	if _, violations := spec.Check([]byte(s.text())); len(violations) > 0 {
		return ui.Usage(violations.Err())
	}
	return nil
}

// text is a spec with the fields that are changed most often.
func (s *starter) text() string {
	minor := strings.Join(strings.SplitN(strings.TrimPrefix(version.Kubernetes, "v"), ".", 3)[:2], ".")
	datacenter, objects, group := "DockerDatacenterConfig", dockerText, ""
	if s.provider == "packet" {
		datacenter, objects = "PacketDatacenterConfig", packetText
		group = "\n    machineGroupRef: {kind: PacketMachineConfig, name: " + s.name + "-machines}"
	}
	return strings.NewReplacer(
		"ROLE", s.role(), "GROUP", group, "NAME", s.name, "MINOR", minor, "DATACENTER", datacenter,
	).Replace(clusterText + objects)
}

// role is the part of a spec that says who manages the cluster.
func (s *starter) role() string {
	switch {
	case s.managedBy != "":
		return "# A workload cluster of this management cluster.\n  managementCluster: {name: " + s.managedBy + "}"
	case s.workload:
		return "# A workload cluster of the management plane that it is created on.\n  management: false"
	}
	return "# A management cluster manages itself.\n  managementCluster: {name: " + s.name + "}"
}

const clusterText = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: NAME
spec:
  kubernetesVersion: "MINOR"
  ROLE
  controlPlaneConfiguration:
    count: 1 # 3 to survive the loss of a machineGROUP
  workerNodeGroupConfigurations:
  - name: md-0
    count: 1GROUP
  clusterNetwork:
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
  datacenterRef: {kind: DATACENTER, name: NAME}
`

const dockerText = `---
# Machines on this host.
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata:
  name: NAME
spec: {}
`

const packetText = `---
# Machines behind a Packet API. The management cluster has its credentials in namespace eksa-system,
# in the Secret named by credentialsRef.
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: PacketDatacenterConfig
metadata:
  name: NAME
spec:
  projectID: 00000000-0000-0000-0000-000000000000 # yours
  metro: da
  credentialsRef: {name: packet-credentials}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: PacketMachineConfig
metadata:
  name: NAME-machines
spec:
  machineType: c3.small.x86
  os: ubuntu_24_04
  billingCycle: hourly
`
