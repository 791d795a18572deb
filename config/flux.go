package config

import (
	"bytes"
	"embed"
)

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

	// FluxExternalArtifacts is the feature gate with which kustomize-controller accepts sources that
	// the manager publishes.
	FluxExternalArtifacts = "ExternalArtifact=true"
)

//go:embed flux/*.yaml flux/crd/*.yaml flux/rbac/*.yaml flux/manager/*.yaml
var fluxFiles embed.FS

// FluxNamespaceManifest returns the namespace of Flux.
func FluxNamespaceManifest() Manifest { return readFrom(fluxFiles, "flux")[0] }

// FluxCRDs returns the CRDs of the Flux controllers that Drover runs.
func FluxCRDs() []Manifest { return readFrom(fluxFiles, "flux/crd") }

// FluxRBAC returns the service accounts of the Flux controllers, their roles and bindings.
func FluxRBAC() []Manifest { return readFrom(fluxFiles, "flux/rbac") }

// FluxImages are the images of the controllers.
type FluxImages struct {
	Source, Kustomize string
}

// FluxManager returns the objects that run the controllers inside a cluster, except the namespace.
func FluxManager(images FluxImages) []Manifest {
	manifests := readFrom(fluxFiles, "flux/manager")
	for i := range manifests {
		for placeholder, image := range map[string]string{
			"drover.invalid/source-controller:unset":    images.Source,
			"drover.invalid/kustomize-controller:unset": images.Kustomize,
		} {
			manifests[i].Data = bytes.ReplaceAll(manifests[i].Data, []byte(placeholder), []byte(image))
		}
	}
	return manifests
}
