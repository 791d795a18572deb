package machine

import (
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/metal/client"
)

// Tags by which a device is known. The first prefix is what devices have got since 2023, the second what older ones still carry.
var prefixes = []string{"capp:", "cluster-api-provider-packet:"}

const (
	clusterTag   = "cluster-id:"
	machineTag   = "machine-uid:" // its value is the Machine's name
	namespaceTag = "namespace:"

	// claimTag binds a device to one PacketMachine for good; devices of other provisioners don't have it.
	claimTag = "drover:claim:"
	// versionTag tells a machine which Kubernetes it is to run.
	versionTag = "kubernetes.io/version:"
	roleTag    = "kubernetes.io/role:"
)

// identity is how a machine is called in tags.
type identity struct{ cluster, namespace, machine, claim string }

// tags are what a device of the machine must carry, in the form of one prefix.
func (i identity) tags(prefix string) []string {
	return []string{
		client.Tag(prefix+clusterTag, i.cluster),
		client.Tag(prefix+machineTag, i.machine),
		client.Tag(prefix+namespaceTag, i.namespace),
	}
}

// owns says whether the device was made for this machine: it has the machine's tags, and is claimed by nobody else.
func (i identity) owns(d client.Device) bool {
	named := slices.ContainsFunc(prefixes, func(prefix string) bool {
		return !slices.ContainsFunc(i.tags(prefix), func(tag string) bool { return !slices.Contains(d.Tags, tag) })
	})
	if !named {
		return false
	}
	claimed := slices.ContainsFunc(d.Tags, func(tag string) bool { return strings.HasPrefix(tag, claimTag) })
	return !claimed || slices.Contains(d.Tags, claimTag+i.claim)
}

// deviceTags are all tags of a new device: the user's first, then ours.
func deviceTags(user []string, i identity, role, version string) []string {
	tags := slices.Clone(user)
	tags = append(tags, i.tags(prefixes[0])...)
	tags = append(tags, claimTag+i.claim, roleTag+role)
	if version != "" {
		tags = append(tags, client.Tag(versionTag, version))
	}
	return unique(tags)
}

func unique(tags []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(tags, func(tag string) bool {
		again := seen[tag] || tag == ""
		seen[tag] = true
		return again
	})
}
