package plane

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// steadyGOGC makes Kubernetes collect garbage twice as often as by default, which saves a fifth of
// the plane's memory and costs a busy API server a quarter more CPU.
const steadyGOGC = "50"

// briefGOGC makes a short-lived plane collect garbage half as often as by default, which saves a
// quarter of the CPU of its start.
const briefGOGC = "200"

// environment returns additional variables for a background supervisor.
func (o Options) environment() []string {
	if !o.Brief || os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=" + briefGOGC}
}

// singleCore lists programs for which one core is enough. With more, Go wakes other threads each
// time a timer fires.
var singleCore = []string{"etcd", "kube-controller-manager"}

// program prepares a program of the Kubernetes binary. A user's GOGC or GOMAXPROCS takes
// precedence.
func (p *Plane) program(name string, args ...string) *exec.Cmd {
	cmd := p.kube.Command(context.Background(), name, args...)
	env := []string{"GOGC=" + steadyGOGC}
	if slices.Contains(singleCore, name) {
		env = append(env, "GOMAXPROCS=1")
	}
	cmd.Env = slices.Concat(env, os.Environ())
	return cmd
}

// workloadKinds are the kinds that only nodes and their workloads need; a plane has neither. The
// API server still serves them from etcd: a cache costs a timer that fires every second per kind,
// with or without objects, which added up to a fifth of an idle plane's CPU.
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

// withoutCache returns the flag of the API server that disables caches of kinds.
func withoutCache(kinds []string) string {
	return "--watch-cache-sizes=" + strings.Join(kinds, "#0,") + "#0"
}
