// Package v1alpha1 is the API of curated packages: a PackageBundle is a signed list of packages that go together, a
// PackageBundleController says which bundle a cluster uses, and a Package is one of them on one cluster.
//
// It has the kinds, fields, defaults and words of the controller that manifests in the wild were written for. Fields that it did not have
// are optional, and an object without them behaves as it did there. The package holds types only; conditions, annotations and names are all
// in names.go.
//
// +kubebuilder:object:generate=true
// +groupName=packages.eks.amazonaws.com
package v1alpha1

//go:generate go tool -modfile=../../../hack/tools/go.mod controller-gen object:headerFile=/dev/null paths=.
