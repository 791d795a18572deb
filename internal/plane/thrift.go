package plane

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// thrift has Kubernetes collect garbage twice as often as Go would, which saves a fifth of the
// plane's memory. A busy API server pays for it with a quarter more CPU.
const thrift = "50"

// haste has a plane that lives for minutes collect garbage half as often as Go would, which saves a
// quarter of the CPU that its start takes.
const haste = "200"

// environment is what a plane in the background finds besides what is there.
func (o Options) environment() []string {
	if !o.Brief || os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=" + haste}
}

// modest are programs that one core is plenty for. Left with one, Go does not wake others each time
// that a timer fires.
var modest = []string{"etcd", "kube-controller-manager"}

// program prepares one of the programs in the Kubernetes binary. Whoever sets GOGC or GOMAXPROCS
// knows better.
func (p *Plane) program(name string, args ...string) *exec.Cmd {
	cmd := p.kube.Command(context.Background(), name, args...)
	env := []string{"GOGC=" + thrift}
	if slices.Contains(modest, name) {
		env = append(env, "GOMAXPROCS=1")
	}
	cmd.Env = slices.Concat(env, os.Environ())
	return cmd
}

// workloadKinds are what only nodes and their workloads need, and a plane has neither. The API
// server serves them all the same, from etcd: a cache costs a timer that fires every second, for
// each kind and whether there are objects or not, which added up to a fifth of what an idle plane
// used.
var workloadKinds = []string{
	"endpoints", "nodes", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "replicationcontrollers", "services",
	"controllerrevisions.apps", "daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps",
	"horizontalpodautoscalers.autoscaling", "cronjobs.batch", "jobs.batch", "endpointslices.discovery.k8s.io",
	"ingressclasses.networking.k8s.io", "ingresses.networking.k8s.io", "ipaddresses.networking.k8s.io",
	"networkpolicies.networking.k8s.io", "servicecidrs.networking.k8s.io",
	"runtimeclasses.node.k8s.io", "poddisruptionbudgets.policy",
	"deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "resourceslices.resource.k8s.io",
	"csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "csistoragecapacities.storage.k8s.io", "storageclasses.storage.k8s.io",
	"volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io",
}

// withoutCache is a flag of the API server that turns caches off.
func withoutCache(kinds []string) string {
	return "--watch-cache-sizes=" + strings.Join(kinds, "#0,") + "#0"
}
