// Package v1alpha1 is the API of whole clusters: a Cluster says which Kubernetes a user wants, on how many machines of which kind, and names
// the objects beside it that say where the machines come from, who may log in, and which Git repository holds it all.
//
// It has the kinds, fields, defaults and words that manifests in the wild were written for. PacketDatacenterConfig, PacketMachineConfig and
// spec.management of a Cluster are ours; an object without them behaves as it did there. The package holds types only: rules that a schema
// can't express are in internal/model/spec. Start with Cluster; conditions and their words are in conditions.go.
//
// +kubebuilder:object:generate=true
// +groupName=anywhere.eks.amazonaws.com
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
