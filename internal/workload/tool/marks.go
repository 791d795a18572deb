package tool

// Marks for tools without their own. Records and objects have OwnerLabel, which they are watched
// by. A record also has NameLabel and is in the namespace of its installation. An object has the
// two annotations.
const (
	OwnerLabel          = "addons.cluster.x-k8s.io/owner"
	OwnerDrover         = "drover"
	NameLabel           = "addons.cluster.x-k8s.io/name"
	NameAnnotation      = "addons.cluster.x-k8s.io/name"
	NamespaceAnnotation = "addons.cluster.x-k8s.io/namespace"
)
