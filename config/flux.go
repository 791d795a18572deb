package config

import "embed"

// Names of an installation of Flux, which are upstream's, so that its command line finds it.
const (
	FluxNamespace = "flux-system"
	FluxPartOf    = "flux"

	// FluxSource and FluxKustomize are ServiceAccounts. A Kustomization in FluxNamespace that runs
	// as FluxKustomize has administrator privileges.
	FluxSource    = "source-controller"
	FluxKustomize = "kustomize-controller"
	// FluxDefault is the ServiceAccount of Kustomizations that name none, in their own namespace.
	FluxDefault = "default"
)

//go:embed flux/*.yaml flux/crd/*.yaml flux/rbac/*.yaml
var fluxFiles embed.FS

// FluxNamespaceManifest returns the namespace of Flux.
func FluxNamespaceManifest() Manifest { return readFrom(fluxFiles, "flux")[0] }

// FluxCRDs returns the CRDs of the Flux controllers that Drover runs.
func FluxCRDs() []Manifest { return readFrom(fluxFiles, "flux/crd") }

// FluxRBAC returns the service accounts of the Flux controllers, their roles and bindings.
func FluxRBAC() []Manifest { return readFrom(fluxFiles, "flux/rbac") }
