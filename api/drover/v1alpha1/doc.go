// Package v1alpha1 is the API of what only Drover has: an AuditRecord says who did what to which cluster, and when. The package holds types
// only.
//
// +kubebuilder:object:generate=true
// +groupName=drover.dev
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
