// Package v1beta1 is the API of clusters and machines behind the Packet HTTP API: PacketCluster, PacketMachine and their templates.
//
// It has the kinds, fields and defaults of the provider that manifests in the wild were written for, and on top of them what the v1beta2
// contract of Cluster API asks for; one version fulfils both contracts. The package holds types only: rules that a schema can't express
// are in internal/controllers/packet/admission, behaviour is in the controllers next to it. Start with PacketCluster and PacketMachine; the
// conditions that they report are all in conditions.go.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
