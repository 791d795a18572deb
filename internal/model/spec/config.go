// Package spec reads the spec of a cluster from a file or from the objects of an API server, sets
// defaults, and validates specs and changes of them.
//
// Everything but Gather depends on its input only. The command line, the webhooks and the
// controller call the same functions, so a file that "drover validate" accepts is not rejected
// later. The package never checks what exists: preflight checks find out whether a name is taken, a
// machine is available or a version is supported. Start with Read and Validate.
package spec

import (
	"cmp"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Config is a Cluster with the objects that it references. Only Cluster is always set. Machines and
// OIDC are keyed by name.
type Config struct {
	Cluster  *anywherev1.Cluster
	Docker   *anywherev1.DockerDatacenterConfig
	Packet   *anywherev1.PacketDatacenterConfig
	Machines map[string]*anywherev1.PacketMachineConfig
	Flux     *anywherev1.FluxConfig
	GitOps   *anywherev1.GitOpsConfig
	OIDC     map[string]*anywherev1.OIDCConfig
	// Ignored lists the objects of a file that the cluster does not need, such as
	// "ConfigMap/notes".
	Ignored []string
	// Warnings are what is accepted in a file although it is not quite right.
	Warnings []string
}

// Objects returns all objects in the order in which they are applied: the Cluster comes last.
func (c *Config) Objects() []client.Object {
	var all []client.Object
	if c.Docker != nil {
		all = append(all, c.Docker)
	}
	if c.Packet != nil {
		all = append(all, c.Packet)
	}
	for _, m := range byName(c.Machines) {
		all = append(all, m)
	}
	if c.Flux != nil {
		all = append(all, c.Flux)
	}
	if c.GitOps != nil {
		all = append(all, c.GitOps)
	}
	for _, o := range byName(c.OIDC) {
		all = append(all, o)
	}
	if c.Cluster != nil {
		all = append(all, c.Cluster)
	}
	return all
}

// byName returns the values of a map, sorted by key.
func byName[K cmp.Ordered, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[key])
	}
	return out
}
