package capi

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
)

// cacheOptions returns the union of what upstream's three managers cache:
//
//	                 core            bootstrap       control plane    here
//	Secret           by label        by label        by label         by label
//	  its data       kubeconfigs     all purposes    all purposes     all purposes
//	Machine          whole           whole           control planes'  whole
//	MachineSet       whole           metadata        -                whole
//	KubeadmConfig    whole           whole           control planes'  whole
//	managedFields    kept            dropped         kept             kept
//
// managedFields are kept because server-side apply of topologies and control planes reads those of
// cached objects. They are dropped from Secrets and CRDs, where they are unused.
func cacheOptions(o Options) ctrlcache.Options {
	return ctrlcache.Options{
		DefaultNamespaces: namespaces(o.WatchNamespace),
		SyncPeriod:        &o.SyncPeriod,
		ByObject: map[client.Object]ctrlcache.ByObject{
			&corev1.Secret{}: {Label: ofCluster(), Transform: trimSecret},
			// Only the metadata of CRDs is cached; the annotation of client-side apply with a copy
			// of the whole CRD would outweigh everything else.
			&apiextensionsv1.CustomResourceDefinition{}: {Transform: trimDefinition},
		},
	}
}

// clientOptions keeps Secrets and ConfigMaps of all kinds out of the cache; referenced objects of
// any provider are in it.
func clientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{
		DisableFor:   []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
		Unstructured: true,
	}}
}

// secretClient reads Secrets from the shared cache, unlike the manager's own client.
func secretClient(mgr ctrl.Manager) (client.Client, error) {
	return client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		Cache:      &client.CacheOptions{Reader: mgr.GetCache()},
	})
}

// secretMetadataCache caches the metadata of every Secret, not only those of clusters, and never
// their data.
func secretMetadataCache(mgr ctrl.Manager, o Options) (ctrlcache.Cache, error) {
	c, err := ctrlcache.New(mgr.GetConfig(), ctrlcache.Options{
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		HTTPClient:        mgr.GetHTTPClient(),
		SyncPeriod:        &o.SyncPeriod,
		DefaultNamespaces: namespaces(o.WatchNamespace),
		DefaultTransform:  ctrlcache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, err
	}
	return c, mgr.Add(c)
}

func namespaces(only string) map[string]ctrlcache.Config {
	if only == "" {
		return nil
	}
	return map[string]ctrlcache.Config{only: {}}
}

func ofCluster() labels.Selector {
	named, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*named)
}

// trimSecret drops the data of Secrets that no reconciler reads from the cache.
func trimSecret(in any) (any, error) {
	s, ok := in.(*corev1.Secret)
	if !ok {
		return in, nil
	}
	s.ManagedFields = nil
	if !secret.HasPurposeSuffix(s.Name) {
		s.Data = nil
	}
	return s, nil
}

func trimDefinition(in any) (any, error) {
	obj, err := meta.Accessor(in)
	if err != nil {
		return in, nil //nolint:nilerr // a tombstone has no metadata
	}
	obj.SetManagedFields(nil)
	if annotations := obj.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		obj.SetAnnotations(annotations)
	}
	return in, nil
}
