// Package v1beta1 is the API of the bootstrap configuration of etcd machines: EtcdadmConfig.
//
// Kind and fields are compatible with manifests for the etcdadm bootstrap provider. Its group and
// version are also those of Cluster API's KubeadmConfig, which upstream owns. The package contains
// types only; internal/controllers/etcd has the behavior. Start with EtcdadmConfigSpec.
//
// +kubebuilder:object:generate=true
// +groupName=bootstrap.cluster.x-k8s.io
package v1beta1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
