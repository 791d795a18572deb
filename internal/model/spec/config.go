// Package spec turns the description of a cluster, a file or objects of an API server, into a Config, fills in defaults, and says what is
// wrong with it or with a change of it.
//
// All but Gather are functions of their input alone: the command line, the webhooks and the controller call the same ones, so that a file
// that "drover validate" accepts is not refused later. It never looks at what exists: whether a name is taken, a machine can be had or a
// version is shipped, is for preflight. Start with Read and Validate.
package spec

import (
	"cmp"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Config is a Cluster with the objects that it names. Only Cluster is always there. Machines and OIDC are by name.
type Config struct {
	Cluster  *anywherev1.Cluster
	Docker   *anywherev1.DockerDatacenterConfig
	Packet   *anywherev1.PacketDatacenterConfig
	Machines map[string]*anywherev1.PacketMachineConfig
	Flux     *anywherev1.FluxConfig
	GitOps   *anywherev1.GitOpsConfig
	OIDC     map[string]*anywherev1.OIDCConfig
	// Ignored are the objects of a file that are none of ours, such as "ConfigMap/notes".
	Ignored []string
}

// Objects returns all that is there, in the order in which it is applied: what the Cluster names first, the Cluster last.
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

// byName returns the values in the order of their keys.
func byName[K cmp.Ordered, V any](m map[K]V) []V {
	out := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[key])
	}
	return out
}
