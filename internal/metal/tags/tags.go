// Package tags owns the tags that tie devices and addresses in the Packet API to the objects they
// belong to. Whoever writes or reads such a tag does it here: the controllers that order devices
// and reserve addresses, the drivers that run them, and the commands that list them.
//
// Tags are a wire format. Devices outlive the program that ordered them, and other agents (the
// cloud provider inside a workload cluster, the provider that Drover replaces) read the same tags,
// so spelling and order never change. Start with Device and Endpoint.
package tags

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// MaxLength is the length of the longest tag that the API accepts.
const MaxLength = 80

const (
	// current starts the tags of devices since 2023, former those of older ones.
	current = "capp:"
	former  = "cluster-api-provider-packet:"

	clusterKey   = "cluster-id:"
	machineKey   = "machine-uid:" // the value is the name of the Machine
	namespaceKey = "namespace:"

	// claimKey binds a device to one PacketMachine. Devices of other provisioners lack it.
	claimKey = "drover:claim:"
	// versionKey names the Kubernetes version that a device runs.
	versionKey = "kubernetes.io/version:"
	roleKey    = "kubernetes.io/role:"
)

// join returns key and value as one tag. A value that makes the tag too long is shortened, with a
// hash that keeps different values different.
func join(key, value string) string {
	if len(key)+len(value) <= MaxLength {
		return key + value
	}
	sum := sha256.Sum256([]byte(value))
	hash := "-" + hex.EncodeToString(sum[:5])
	return key + value[:MaxLength-len(key)-len(hash)] + hash
}

// KubernetesVersion returns the version that a device is tagged with, or "".
func KubernetesVersion(tags []string) string {
	version, _ := find(tags, versionKey)
	return version
}

// WithKubernetesVersion returns the tags of a device that runs another version now.
func WithKubernetesVersion(tags []string, version string) []string {
	out := slices.Clone(tags)
	for i, tag := range out {
		if strings.HasPrefix(tag, versionKey) {
			out[i] = join(versionKey, version)
			return out
		}
	}
	return append(out, join(versionKey, version))
}

// TooLong returns the first tag that the API rejects for its length.
func TooLong(tags []string) (string, bool) {
	i := slices.IndexFunc(tags, func(tag string) bool { return len(tag) > MaxLength })
	if i < 0 {
		return "", false
	}
	return tags[i], true
}

// find returns the value of the first tag with the key.
func find(tags []string, key string) (string, bool) {
	for _, tag := range tags {
		if value, ok := strings.CutPrefix(tag, key); ok {
			return value, true
		}
	}
	return "", false
}

func containsAll(tags, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(tag string) bool { return !slices.Contains(tags, tag) })
}

// unique drops empty and repeated tags and keeps the order of the others.
func unique(tags []string) []string {
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(tags, func(tag string) bool {
		repeated := seen[tag]
		seen[tag] = true
		return repeated
	})
}
