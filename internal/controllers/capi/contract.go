package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	"sigs.k8s.io/cluster-api/util/contract"
)

// contracts are the supported contract versions, the preferred one first.
var contracts = []string{"v1beta2", "v1beta1"}

// definitionKind is the kind for reading CRDs by their metadata, the only part that is cached.
var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// setAPIVersionGetters configures the API versions that conversion webhooks write where v1beta1 has
// a version and v1beta2 has only group and kind.
func setAPIVersionGetters(reader client.Reader) {
	get := func(ctx context.Context, kind schema.GroupKind) (string, error) { return apiVersion(ctx, reader, kind) }
	coreconversion.SetAPIVersionGetter(get)
	controlplaneconversion.SetAPIVersionGetter(get)
}

// fallbackVersion is used for a kind whose provider is not installed yet. Only readers of v1beta1
// see the version, and an object that can be applied before its provider and reports what it waits
// for is more useful than one that can't be read.
const fallbackVersion = "v1beta1"

// apiVersion returns the API version of kind for the best contract that its CRD declares.
func apiVersion(ctx context.Context, reader client.Reader, kind schema.GroupKind) (string, error) {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionKind)
	name := contract.CalculateCRDName(kind.Group, kind.Kind)
	err := reader.Get(ctx, client.ObjectKey{Name: name}, definition)
	if apierrors.IsNotFound(err) {
		return schema.GroupVersion{Group: kind.Group, Version: fallbackVersion}.String(), nil
	}
	if err != nil {
		return "", fmt.Errorf("looking up the API version of %q: %w", kind, err)
	}
	v, ok := contractVersion(definition.Labels)
	if !ok {
		return "", fmt.Errorf("looking up the API version of %q: definition %q has none of the labels %s/%s",
			kind, name, clusterv1.GroupVersion.Group, strings.Join(contracts, ", "+clusterv1.GroupVersion.Group+"/"))
	}
	return schema.GroupVersion{Group: kind.Group, Version: v}.String(), nil
}

// contractVersion returns the newest version in the label of the best contract. A label lists
// versions separated by underscores, as label values can't contain commas.
func contractVersion(labels map[string]string) (string, bool) {
	for _, c := range contracts {
		value := labels[clusterv1.GroupVersion.Group+"/"+c]
		if value == "" {
			continue
		}
		return slices.MaxFunc(strings.Split(value, "_"), version.CompareKubeAwareVersionStrings), true
	}
	return "", false
}
