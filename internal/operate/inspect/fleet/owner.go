package fleet

import "strings"

// Owner is the machine of a cluster that a device was made for.
type Owner struct {
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Machine   string `json:"machine,omitempty"`
}

// OwnerOf reads the tags that the Packet provider gives to devices, of today
// and of before 2023. The zero Owner means that the device has none.
func OwnerOf(tags []string) Owner {
	var o Owner
	for _, tag := range tags {
		for _, prefix := range []string{"capp:", "cluster-api-provider-packet:"} {
			rest, ours := strings.CutPrefix(tag, prefix)
			key, value, _ := strings.Cut(rest, ":")
			switch {
			case !ours:
			case key == "cluster-id":
				o.Cluster = value
			case key == "machine-uid":
				o.Machine = value
			case key == "namespace":
				o.Namespace = value
			}
		}
	}
	if o.Cluster == "" {
		return Owner{}
	}
	return o
}

// ClusterName is how people write it, empty if there is none.
func (o Owner) ClusterName() string {
	if o.Namespace == "" {
		return o.Cluster
	}
	return o.Namespace + "/" + o.Cluster
}
