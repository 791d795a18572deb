package gitops_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/model/document"
	"github.com/drover-dev/drover/internal/model/gitops"
)

const driftFile = `apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: Cluster
metadata:
  name: dev
  labels: {tier: dev}
spec:
  kubernetesVersion: "1.36"
  controlPlaneConfiguration: {count: 1, skipLoadBalancerDeployment: false}
  machineHealthCheck: {nodeStartupTimeout: 10m}
  workerNodeGroupConfigurations:
  - {name: md-0, count: 2}
  - {name: md-1, count: 1}
---
apiVersion: anywhere.eks.amazonaws.com/v1alpha1
kind: DockerDatacenterConfig
metadata: {name: dev}
spec: {}
`

// driftLive is the plane's Cluster, with what the API server adds.
const driftLive = `metadata:
  name: dev
  uid: 1-2-3
  labels: {tier: dev, kustomize.toolkit.fluxcd.io/name: dev}
  annotations: {drover.dev/created-by: jane}
spec:
  kubernetesVersion: "1.36"
  controlPlaneConfiguration: {count: 1, endpoint: {host: 10.0.0.1}}
  machineHealthCheck: {nodeStartupTimeout: 10m0s, maxUnhealthy: 100%}
  clusterNetwork: {dns: {}}
  workerNodeGroupConfigurations:
  - {name: md-1, count: 1, upgradeRolloutStrategy: {type: RollingUpdate}}
  - {name: md-0, count: 2}
status: {ready: true}
`

func TestDriftComparesWhatTheFilesSpecify(t *testing.T) {
	field := func(path, old, current string) gitops.FieldChange {
		return gitops.FieldChange{Object: "Cluster/dev", Path: path, Old: old, New: current}
	}
	for name, tt := range map[string]struct {
		from, to string
		want     gitops.ClusterChange
	}{
		"defaults and other forms of a value are no difference": {want: gitops.ClusterChange{Action: gitops.Changed}},
		"a field": {"count: 2}", "count: 5}", gitops.ClusterChange{
			Action: gitops.Changed, Fields: []gitops.FieldChange{field("spec.workerNodeGroupConfigurations[md-0].count", "5", "2")},
		}},
		"a label": {"tier: dev", "tier: prod", gitops.ClusterChange{
			Action: gitops.Changed, Fields: []gitops.FieldChange{field("metadata.labels.tier", `"prod"`, `"dev"`)},
		}},
		"a duration": {"10m0s", "5m0s", gitops.ClusterChange{
			Action: gitops.Changed, Fields: []gitops.FieldChange{field("spec.machineHealthCheck.nodeStartupTimeout", `"5m0s"`, `"10m"`)},
		}},
		"an item that the file lacks": {"- {name: md-0, count: 2}", "- {name: md-0, count: 2}\n  - {name: md-2}", gitops.ClusterChange{
			Action: gitops.Changed, Fields: []gitops.FieldChange{field("spec.workerNodeGroupConfigurations[md-2]", `{"name":"md-2"}`, "")},
		}},
		"no cluster": {driftLive, "", gitops.ClusterChange{Action: gitops.Created}},
	} {
		t.Run(name, func(t *testing.T) {
			live := func(id document.ID) (map[string]any, error) {
				if id.Kind != "Cluster" {
					return map[string]any{}, nil
				}
				var object map[string]any
				err := yaml.Unmarshal([]byte(strings.Replace(driftLive, tt.from, tt.to, 1)), &object)
				return object, err
			}
			files := repository(map[string]string{root + "/workload-clusters/dev/eksa-cluster.yaml": driftFile})
			got, err := gitops.Drift(files, root, func(string) bool { return true }, live)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Cluster, tt.want.File = "dev", root+"/workload-clusters/dev/eksa-cluster.yaml"
			if diff := cmp.Diff([]gitops.ClusterChange{tt.want}, got.Clusters); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDriftLeavesOutWhatItCannotCompare(t *testing.T) {
	exists := func(document.ID) (map[string]any, error) { return map[string]any{}, nil }
	files := repository(map[string]string{root + "/a/dev.yaml": driftFile, root + "/b/dev.yaml": driftFile})
	if got, err := gitops.Drift(files, root, func(string) bool { return true }, exists); err != nil || len(got.Clusters) > 0 {
		t.Errorf("a cluster in two files: %+v, %v", got, err)
	}
	delete(files, root+"/b/dev.yaml")
	if got, err := gitops.Drift(files, root, func(string) bool { return false }, exists); err != nil || len(got.Clusters) > 0 {
		t.Errorf("a cluster of somebody else: %+v, %v", got, err)
	}
	fails := func(document.ID) (map[string]any, error) { return nil, errors.New("connection refused") }
	if _, err := gitops.Drift(files, root, func(string) bool { return true }, fails); err == nil {
		t.Error("a plane that does not answer is ignored")
	}
	missing := func(id document.ID) (map[string]any, error) {
		if id.Kind == "Cluster" {
			var object map[string]any
			err := yaml.Unmarshal([]byte(driftLive), &object)
			return object, err
		}
		return nil, nil
	}
	got, err := gitops.Drift(files, root, func(string) bool { return true }, missing)
	want := []gitops.FieldChange{{Object: "DockerDatacenterConfig/dev", New: "exists"}}
	if err != nil || cmp.Diff(want, got.Clusters[0].Fields) != "" {
		t.Errorf("an object that is gone: %+v, %v", got, err)
	}
}
