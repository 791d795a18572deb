package tool

// Marks of a tool that has none of its own. Records and objects have the label OwnerLabel, so that they can be watched; a record also has
// NameLabel and is in the namespace of its installation, and an object has the two annotations.
const (
	OwnerLabel          = "addons.cluster.x-k8s.io/owner"
	OwnerDrover         = "drover"
	NameLabel           = "addons.cluster.x-k8s.io/name"
	NameAnnotation      = "addons.cluster.x-k8s.io/name"
	NamespaceAnnotation = "addons.cluster.x-k8s.io/namespace"
)
