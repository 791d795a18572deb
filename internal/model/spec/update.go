package spec

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// ValidateCreate returns why a valid Cluster can't be created through the API. A command creates
// management clusters and annotates them, or moves them paused. An encryption plugin must run
// before API servers use it.
func ValidateCreate(c *anywherev1.Cluster) Violations {
	if c.IsPaused() {
		return nil
	}
	var problems Violations
	if c.IsSelfManaged() && !c.IsManagedByCLI() {
		problems = violation("spec.managementCluster.name", "name the management cluster, or set management: false; create management clusters with `drover create cluster`",
			"creating new cluster on existing cluster is not supported for self managed clusters")
	}
	if c.UsesEncryptionPlugin() {
		problems = append(problems, violation("spec.etcdEncryption", "create the cluster without it, run the plugin on its control planes, then add it",
			"etcdEncryption is not supported during cluster creation")...)
	}
	return problems
}

// ValidateUpdate returns why a Cluster can't be updated. Some fields are immutable for all
// clusters, others for management clusters only, and none while a cluster is paused, which is how
// clusters are moved and repaired.
func ValidateUpdate(was, is *anywherev1.Cluster) Violations {
	was, is = was.DeepCopy(), is.DeepCopy()
	DefaultCluster(was)
	DefaultCluster(is)
	var problems Violations
	if !was.IsPaused() {
		problems = append(problems, immutableProblems(was, is)...)
	}
	for _, rule := range []func(was, is *anywherev1.Cluster) Violations{keyKeptRule, pluginKeptRule, clusterUpgradeRule, groupUpgradeRule, groupVersionRemovedRule, eksaVersionKeptRule, eksaVersionSkewRule} {
		problems = append(problems, rule(was, is)...)
	}
	return problems
}

// immutable is a field of a Cluster that can't be changed.
type immutable struct {
	path string
	of   func(s *anywherev1.ClusterSpec) any
}

// immutableForAll are the fields that would require a new cluster.
var immutableForAll = []immutable{
	{"spec.datacenterRef", func(s *anywherev1.ClusterSpec) any { return s.DatacenterRef }},
	{controlPlane + ".endpoint", func(s *anywherev1.ClusterSpec) any { return endpointOf(s) }},
	{network + ".pods", func(s *anywherev1.ClusterSpec) any { return s.ClusterNetwork.Pods }},
	{network + ".services", func(s *anywherev1.ClusterSpec) any { return s.ClusterNetwork.Services }},
	{network + ".nodes", func(s *anywherev1.ClusterSpec) any { return maskOf(s) }},
}

// immutableForManagement are the fields that would affect the machines of the manager itself.
var immutableForManagement = []immutable{
	{network + ".dns", func(s *anywherev1.ClusterSpec) any { return s.ClusterNetwork.DNS }},
	{"spec.proxyConfiguration", func(s *anywherev1.ClusterSpec) any { return proxyOf(s) }},
}

func immutableProblems(was, is *anywherev1.Cluster) Violations {
	problems := managementChange(was, is)
	problems = append(problems, topologyChange(was, is)...)
	parts := immutableForAll
	if was.IsSelfManaged() {
		parts = append(parts[:len(parts):len(parts)], immutableForManagement...)
		problems = append(problems, gitOpsChange(was, is)...)
	}
	for _, part := range parts {
		if !equality.Semantic.DeepEqual(part.of(&was.Spec), part.of(&is.Spec)) {
			problems = append(problems, violation(part.path, "restore the old value or create a new cluster", "field is immutable")...)
		}
	}
	return problems
}

// managementChange compares the meaning of the fields: a cluster that names itself equals one that
// names none. A workload cluster that names none may name its management cluster.
func managementChange(was, is *anywherev1.Cluster) Violations {
	switch {
	case was.IsSelfManaged() != is.IsSelfManaged():
		return violation("spec.management", "restore the old value or create a new cluster", "management flag is immutable")
	case was.ManagedBy() != "" && was.ManagedBy() != is.ManagedBy():
		return violation("spec.managementCluster.name", "restore the old value or create a new cluster", "management cluster name is immutable")
	}
	return nil
}

// gitOpsChange allows GitOps to be enabled once for a management cluster. A GitOpsConfig may become
// the FluxConfig that it stands for.
func gitOpsChange(was, is *anywherev1.Cluster) Violations {
	from, to := was.Spec.GitOpsRef, is.Spec.GitOpsRef
	if from == nil || reflect.DeepEqual(from, to) {
		return nil
	}
	if to != nil && from.Name == to.Name && from.Kind == anywherev1.GitOpsConfigKind && to.Kind == anywherev1.FluxConfigKind {
		return nil
	}
	return violation("spec.gitOpsRef", "restore the old value", "field is immutable once it is set")
}

// proxyOf returns the proxy with the destinations that bypass it in a fixed order.
func proxyOf(s *anywherev1.ClusterSpec) *anywherev1.ProxyConfiguration {
	proxy := s.ProxyConfiguration.DeepCopy()
	if proxy != nil {
		slices.Sort(proxy.NoProxy)
	}
	return proxy
}

// KeepOrder gives the destinations that bypass the proxy their former order if nothing else about
// them changes. The order has no meaning, but another one would replace machines.
func KeepOrder(was, is *anywherev1.Cluster) {
	before, after := was.Spec.ProxyConfiguration, is.Spec.ProxyConfiguration
	if before == nil || after == nil {
		return
	}
	if slices.Equal(slices.Sorted(slices.Values(before.NoProxy)), slices.Sorted(slices.Values(after.NoProxy))) {
		after.NoProxy = slices.Clone(before.NoProxy)
	}
}

// endpointOf returns the host of the endpoint, or the empty string without one.
func endpointOf(s *anywherev1.ClusterSpec) string {
	if s.ControlPlaneConfiguration.Endpoint == nil {
		return ""
	}
	return s.ControlPlaneConfiguration.Endpoint.Host
}

// maskOf returns the prefix length of the Pod blocks of nodes, or 0 if it is not set.
func maskOf(s *anywherev1.ClusterSpec) int {
	if s.ClusterNetwork.Nodes == nil || s.ClusterNetwork.Nodes.CIDRMaskSize == nil {
		return 0
	}
	return *s.ClusterNetwork.Nodes.CIDRMaskSize
}

// ValidateObjectUpdate returns why an object that a Cluster may reference can't be updated.
func ValidateObjectUpdate(was, is client.Object) Violations {
	if was.GetAnnotations()[anywherev1.PausedAnnotation] == "true" || equality.Semantic.DeepEqual(immutablePart(was), immutablePart(is)) {
		return nil
	}
	return inObject(is, violation("spec", "restore the old value, or reference another "+kindOf(is)+" in the Cluster", "field is immutable"))
}

// immutablePart returns the immutable part of an object, or nil if everything may change. An
// OIDCConfig of a workload cluster, which an annotation marks, may change.
func immutablePart(o client.Object) any {
	switch o := o.(type) {
	case *anywherev1.PacketDatacenterConfig:
		return packetLocation(o)
	case *anywherev1.FluxConfig:
		return o.Spec
	case *anywherev1.GitOpsConfig:
		return o.Spec
	case *anywherev1.OIDCConfig:
		if o.Annotations[anywherev1.ManagedByAnnotation] == "" {
			return o.Spec
		}
	}
	return nil
}

// packetLocation returns the location of machines. The reference to the credentials may change.
func packetLocation(d *anywherev1.PacketDatacenterConfig) anywherev1.PacketDatacenterConfigSpec {
	place := d.Spec
	place.CredentialsRef = nil
	return place
}
