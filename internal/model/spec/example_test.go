package spec_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/model/spec"
)

// example has the fields of the spec that other tools generate for Docker, with external etcd and
// without an endpoint or machine configs. Users bring such files.
const example = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: mgmt
spec:
  clusterNetwork:
    cniConfig:
      cilium: {}
    pods:
      cidrBlocks:
      - 192.168.0.0/16
    services:
      cidrBlocks:
      - 10.96.0.0/12
  controlPlaneConfiguration:
    count: 1
  datacenterRef:
    kind: DockerDatacenterConfig
    name: mgmt
  externalEtcdConfiguration:
    count: 1
  kubernetesVersion: "1.36"
  managementCluster:
    name: mgmt
  workerNodeGroupConfigurations:
  - count: 1
    name: md-0
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata:
  name: mgmt
spec: {}
`

func TestExampleOfOtherToolsIsValid(t *testing.T) {
	config, wrong := spec.Check([]byte(example))
	if len(wrong) > 0 {
		t.Fatalf("rejected: %v", wrong)
	}
	if !config.Cluster.IsSelfManaged() || config.Cluster.Spec.ExternalEtcdConfiguration.Count != 1 || len(config.Cluster.Spec.WorkerNodeGroupConfigurations) != 1 || len(config.Ignored) > 0 {
		t.Errorf("read as %+v, ignored %v", config.Cluster.Spec, config.Ignored)
	}
}
