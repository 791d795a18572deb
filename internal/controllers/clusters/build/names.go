package build

import (
	"strconv"
	"strings"
)

// controlPlaneGroup is the group name in the names of control plane templates.
const controlPlaneGroup = "control-plane"

// WorkersName returns the name of the MachineDeployment of a group.
func WorkersName(cluster, group string) string { return cluster + "-" + group }

// NetworkName returns the name of the HelmChartProxy of the Pod network.
func NetworkName(cluster string) string { return cluster + "-cni" }

// EtcdName returns the name of the EtcdadmCluster of external etcd.
func EtcdName(cluster string) string { return cluster + "-etcd" }

func mirrorSecretName(cluster string) string { return cluster + "-registry-mirror" }

func controlPlaneCheckName(cluster string) string { return cluster + "-kcp-unhealthy" }

func workersCheckName(cluster, group string) string {
	return cluster + "-" + group + "-worker-unhealthy"
}

// templateName returns the name of the n-th template of a group.
func templateName(cluster, group string, n int) string {
	return cluster + "-" + group + "-" + strconv.Itoa(n)
}

// templateNumber returns the number of a template, or 0 if the name is not that of a template of
// the group.
func templateNumber(name, cluster, group string) int {
	rest, ok := strings.CutPrefix(name, cluster+"-"+group+"-")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 1 || strconv.Itoa(n) != rest {
		return 0
	}
	return n
}
