// Package v1alpha1 is the API of clusters: a Cluster selects a Kubernetes version and machines, and
// references configs for the source of machines, authentication and GitOps.
//
// Kinds, fields and defaults are compatible with existing specs. PacketDatacenterConfig,
// PacketMachineConfig and spec.management of a Cluster are additions. The package contains types
// only: internal/model/spec contains the rules that a schema can't express. Start with Cluster;
// conditions.go lists conditions and reasons.
//
// +kubebuilder:object:generate=true
// +groupName=anywhere.eks.amazonaws.com
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
