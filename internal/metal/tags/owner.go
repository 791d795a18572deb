package tags

// Owner is the machine of a cluster that a device was provisioned for.
type Owner struct {
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Machine   string `json:"machine,omitempty"`
}

// OwnerOf returns the machine that a device with the tags was ordered for. The zero Owner means
// that the device belongs to no cluster.
func OwnerOf(all []string) Owner {
	m := ParseMachine(all)
	return Owner{Namespace: m.Namespace, Cluster: m.Cluster, Machine: m.Name}
}

// ClusterName returns namespace/name of the cluster, or the empty string without one.
func (o Owner) ClusterName() string {
	if o.Namespace == "" {
		return o.Cluster
	}
	return o.Namespace + "/" + o.Cluster
}
