// Package v1alpha1 is the API of curated packages. A PackageBundle is a signed list of packages
// that were tested together, a PackageBundleController selects the bundle of a cluster, and a
// Package installs one package of the bundle on one cluster.
//
// Kinds, fields, defaults and messages are compatible with manifests written for the original
// controller. Additional fields are optional and don't change the behavior of existing objects. The
// package contains only types; names.go lists conditions, annotations and names.
//
// +kubebuilder:object:generate=true
// +groupName=packages.eks.amazonaws.com
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
