// Package v1alpha1 is the API group of Drover itself: an AuditRecord records who changed which
// cluster, and when; a GitChange asks Drover to commit a change of a cluster's spec; an
// EtcdSnapshotSchedule asks it to save snapshots of a cluster's etcd. The package contains types
// only.
//
// +kubebuilder:object:generate=true
// +groupName=drover.dev
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
