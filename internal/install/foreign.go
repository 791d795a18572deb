package install

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// fluxVersion is the version of Flux's kinds that Drover uses.
const fluxVersion = "v1"

// fluxNeeds lists the fields below spec that Drover needs, by CRD. The newest one is
// deletionPolicy: without it, deleting a Kustomization would delete its cluster.
var fluxNeeds = map[string][]string{
	"gitrepositories.source.toolkit.fluxcd.io":   {"ref", "secretRef"},
	"kustomizations.kustomize.toolkit.fluxcd.io": {"deletionPolicy", "serviceAccountName", "targetNamespace"},
}

// UnsupportedFluxError means that somebody else's Flux is incomplete or too old.
type UnsupportedFluxError struct{ Definition, Lacks string }

func (e *UnsupportedFluxError) Error() string {
	return fmt.Sprintf("the Flux on this cluster, which Drover didn't install, is not supported: %s lacks %s; upgrade it, or uninstall it so that Drover installs its own",
		e.Definition, e.Lacks)
}

// CheckForeignFlux checks that a Flux which somebody else installed has what Drover needs.
func CheckForeignFlux(ctx context.Context, cfg *rest.Config) error {
	c, err := apiextensionsclient.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("checking the installed Flux: %w", err)
	}
	for name, fields := range fluxNeeds {
		crd, err := c.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return &UnsupportedFluxError{Definition: name, Lacks: "its definition"}
		}
		if err != nil {
			return fmt.Errorf("checking the installed Flux: %w", err)
		}
		if lacks := lacking(crd, fields); lacks != "" {
			return &UnsupportedFluxError{Definition: name, Lacks: lacks}
		}
	}
	return nil
}

// lacking returns what a definition lacks, or "".
func lacking(crd *apiextensionsv1.CustomResourceDefinition, fields []string) string {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == fluxVersion && v.Served })
	if i < 0 {
		return "version " + fluxVersion
	}
	schema := crd.Spec.Versions[i].Schema
	for _, field := range fields {
		if schema == nil || schema.OpenAPIV3Schema == nil {
			return "a schema"
		}
		if _, ok := schema.OpenAPIV3Schema.Properties["spec"].Properties[field]; !ok {
			return "the field spec." + field
		}
	}
	return ""
}
