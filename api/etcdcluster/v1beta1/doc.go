// Package v1beta1 is the API of external etcd: EtcdadmCluster.
//
// Kind, fields, conditions and annotations are compatible with manifests for the etcdadm
// controller. The package contains types only; internal/controllers/etcd has the behavior. Start
// with EtcdadmClusterSpec; conditions.go lists all conditions.
//
// +kubebuilder:object:generate=true
// +groupName=etcdcluster.cluster.x-k8s.io
package v1beta1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
