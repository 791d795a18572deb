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

// contracts are the contract versions that can be worked with, the preferred one first.
var contracts = []string{"v1beta2", "v1beta1"}

// definitionKind is for reading definitions by their metadata, which is all of them that is ever cached.
var definitionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")

// setAPIVersionGetters tells the conversion webhooks which API version to write where v1beta1 wants one and v1beta2 has only
// group and kind.
func setAPIVersionGetters(reader client.Reader) {
	get := func(ctx context.Context, kind schema.GroupKind) (string, error) { return apiVersion(ctx, reader, kind) }
	coreconversion.SetAPIVersionGetter(get)
	controlplaneconversion.SetAPIVersionGetter(get)
}

// fallbackVersion stands in for a kind whose provider is not installed yet. The version is only shown to readers of v1beta1,
// and an object that can be applied before its provider, and then says in a condition what it waits for, serves them better
// than one that cannot be read at all.
const fallbackVersion = "v1beta1"

// apiVersion returns the API version of kind that fulfils the best contract its definition declares.
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

// contractVersion picks the newest version from the label of the best contract. A label's value lists versions separated by
// underscores, as label values can't hold commas.
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
