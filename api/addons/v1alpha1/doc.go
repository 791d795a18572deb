// Package v1alpha1 is the API of add-ons: a HelmChartProxy installs a chart on clusters, and a
// HelmReleaseProxy is one release of it on one cluster.
//
// It has the kinds, fields and defaults of the Cluster API add-on provider for Helm, including its
// oddities on the wire. Other fields are optional, and an object without them behaves as it did
// there. The package has only types. Start with HelmChartProxySpec; release.go has what both kinds
// share, orchestration.go what is new, and conditions.go all conditions.
//
// +kubebuilder:object:generate=true
// +groupName=addons.cluster.x-k8s.io
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
