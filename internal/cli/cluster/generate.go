package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-dev/drover/internal/base/version"
	"github.com/drover-dev/drover/internal/cli/ui"
)

var providers = []string{"docker", "packet"}

func newGenerate(io *ui.IO) *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use:   "clusterconfig NAME -p PROVIDER",
		Short: "Write the spec of a cluster, to begin with",
		Long: `Write the spec of a cluster to standard output, to begin with. It is that of a
management cluster; with "management: false", or the name of another cluster in
managementCluster, it is that of a workload cluster.

The provider is docker for machines of this host, which need no Docker here, or
packet for machines behind a Packet API.`,
		Example: `  drover generate clusterconfig mgmt -p docker > mgmt.yaml
  drover generate clusterconfig one -p packet > one.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(providers, provider) {
				return ui.Usagef("--provider %q is not supported: use one of %s", provider, strings.Join(providers, ", "))
			}
			_, err := fmt.Fprint(io.Out, generated(args[0], provider))
			return err
		},
	}
	cmd.Flags().StringVarP(&provider, "provider", "p", "", "where machines come from: "+strings.Join(providers, " or "))
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(providers, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// generated is a spec with what people change most.
func generated(name, provider string) string {
	minor := strings.Join(strings.SplitN(strings.TrimPrefix(version.Kubernetes, "v"), ".", 3)[:2], ".")
	text := clusterText + map[string]string{"docker": dockerText, "packet": packetText}[provider]
	group := ""
	if provider == "packet" {
		group = "\n    machineGroupRef: {kind: PacketMachineConfig, name: NAME-machines}"
	}
	datacenter := map[string]string{"docker": "DockerDatacenterConfig", "packet": "PacketDatacenterConfig"}[provider]
	return strings.NewReplacer("GROUP", strings.ReplaceAll(group, "NAME", name), "NAME", name, "MINOR", minor, "DATACENTER", datacenter).Replace(text)
}

const clusterText = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: NAME
spec:
  kubernetesVersion: "MINOR"
  # A management cluster manages itself. The name of another cluster here makes this one of its workload clusters.
  managementCluster: {name: NAME}
  controlPlaneConfiguration:
    count: 1 # 3 for a control plane that survives the loss of a machineGROUP
  workerNodeGroupConfigurations:
  - name: md-0
    count: 1GROUP
  clusterNetwork:
    pods: {cidrBlocks: [192.168.0.0/16]}
    services: {cidrBlocks: [10.96.0.0/12]}
  datacenterRef: {kind: DATACENTER, name: NAME}
`

const dockerText = `---
# Machines of this host.
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata:
  name: NAME
spec: {}
`

const packetText = `---
# Machines behind a Packet API. Its credentials are in the Secret of credentialsRef, in namespace eksa-system of the management cluster.
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
