// Package v1alpha1 is the API of add-ons: a HelmChartProxy says which chart goes onto which clusters, and a HelmReleaseProxy is one
// release of it on one cluster.
//
// It has the kinds, fields and defaults of the provider that manifests in the wild were written for, down to its oddities on the wire;
// fields that it did not have are optional, and an object without them behaves as it did there. The package holds types only. Start with
// HelmChartProxySpec; what both kinds share is in release.go, what is new in orchestration.go, conditions are all in conditions.go.
//
// +kubebuilder:object:generate=true
// +groupName=addons.cluster.x-k8s.io
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
