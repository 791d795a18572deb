// Package v1beta1 is the API of clusters and machines behind the Packet HTTP API: PacketCluster,
// PacketMachine and their templates.
//
// Kinds, fields and defaults are compatible with manifests for the upstream provider, and the
// v1beta2 contract of Cluster API is added; one version implements both contracts. The package
// contains types only: internal/controllers/packet/admission contains the rules that a schema can't
// express, the controllers next to it the behavior. Start with PacketCluster and PacketMachine;
// conditions.go lists all conditions.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
