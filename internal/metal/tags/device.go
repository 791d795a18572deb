package tags

import (
	"slices"
	"strings"
)

// Machine is a machine as the tags of its device identify it.
type Machine struct {
	Namespace, Cluster, Name string
	// Claim is unique to one PacketMachine, also among machines of the same name.
	Claim string
}

// Device is what the tags of a new device say.
type Device struct {
	Machine
	// Role is master, node or etcd.
	Role string
	// Version is the Kubernetes version to run; empty leaves the choice to the machine.
	Version string
	// Endpoint means that the machine may move the address of its cluster's endpoint by itself.
	Endpoint bool
	// User are the tags that the user asked for.
	User []string
}

// Encode returns all tags of a new device, those of the user first.
func (d Device) Encode() []string {
	tags := slices.Concat(d.User, d.names(current))
	tags = append(tags, claimKey+d.Claim, roleKey+d.Role)
	if d.Version != "" {
		tags = append(tags, join(versionKey, d.Version))
	}
	if d.Endpoint {
		tags = append(tags, endpointLease)
	}
	return unique(tags)
}

// Queries returns the tags to list the machine's devices by, the current form first. A device found
// this way may still be another machine's: check it with Owns.
func (m Machine) Queries() []string {
	return []string{join(current+machineKey, m.Name), join(former+machineKey, m.Name)}
}

// Owns reports whether a device with the tags was ordered for the machine: it carries the machine's
// names, all in the same form, and nobody else's claim.
func (m Machine) Owns(tags []string) bool {
	if !containsAll(tags, m.names(current)) && !containsAll(tags, m.names(former)) {
		return false
	}
	_, claimed := find(tags, claimKey)
	return !claimed || slices.Contains(tags, claimKey+m.Claim)
}

func (m Machine) names(prefix string) []string {
	return []string{
		join(prefix+clusterKey, m.Cluster),
		join(prefix+machineKey, m.Name),
		join(prefix+namespaceKey, m.Namespace),
	}
}

// ParseMachine returns the machine that a device was ordered for, without its claim. The zero value
// means that the device belongs to no cluster. Names that Encode shortened stay shortened.
func ParseMachine(tags []string) Machine {
	var m Machine
	for _, tag := range tags {
		name, ours := cutPrefix(tag)
		if !ours {
			continue
		}
		switch key, value, _ := strings.Cut(name, ":"); key + ":" {
		case clusterKey:
			m.Cluster = value
		case machineKey:
			m.Name = value
		case namespaceKey:
			m.Namespace = value
		}
	}
	if m.Cluster == "" {
		return Machine{}
	}
	return m
}

func cutPrefix(tag string) (string, bool) {
	if name, ok := strings.CutPrefix(tag, current); ok {
		return name, true
	}
	return strings.CutPrefix(tag, former)
}
