package fleet

import "github.com/drover-dev/drover/internal/metal/tags"

// Owner is the machine of a cluster that a device was made for.
type Owner struct {
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Machine   string `json:"machine,omitempty"`
}

// OwnerOf returns the machine that a device with the tags was ordered for. The zero Owner means that
// the device belongs to no cluster.
func OwnerOf(all []string) Owner {
	m := tags.ParseMachine(all)
	return Owner{Namespace: m.Namespace, Cluster: m.Cluster, Machine: m.Name}
}

// ClusterName is how people write it, empty if there is none.
func (o Owner) ClusterName() string {
	if o.Namespace == "" {
		return o.Cluster
	}
	return o.Namespace + "/" + o.Cluster
}
