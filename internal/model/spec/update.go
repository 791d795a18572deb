package spec

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// ValidateCreate says why a Cluster that is in order can't be created through the API. A management cluster is made by a command, which
// marks it, or moved there paused; and a plugin for encryption has to run before API servers ask for it.
func ValidateCreate(c *anywherev1.Cluster) Violations {
	if c.IsPaused() {
		return nil
	}
	var problems Violations
	if c.IsSelfManaged() && !c.IsManagedByCLI() {
		problems = one("spec.managementCluster.name", "name the management cluster, or set management: false; a management cluster is made with drover create cluster",
			"creating new cluster on existing cluster is not supported for self managed clusters")
	}
	if len(c.Spec.EtcdEncryption) > 0 {
		problems = append(problems, one("spec.etcdEncryption", "create the cluster without it, run the plugin on its control planes, then add it",
			"etcdEncryption is not supported during cluster creation")...)
	}
	return problems
}

// ValidateUpdate says why a Cluster can't become another. What can't be changed at all is refused for every cluster, and what only should
// not be for a management cluster; neither while the cluster is paused, which is how it is moved and repaired.
func ValidateUpdate(was, is *anywherev1.Cluster) Violations {
	was, is = was.DeepCopy(), is.DeepCopy()
	DefaultCluster(was)
	DefaultCluster(is)
	var problems Violations
	if !was.IsPaused() {
		problems = append(problems, immutableProblems(was, is)...)
	}
	for _, rule := range []func(was, is *anywherev1.Cluster) Violations{clusterUpgradeRule, groupUpgradeRule, groupVersionRemovedRule, eksaVersionKeptRule, eksaVersionSkewRule} {
		problems = append(problems, rule(was, is)...)
	}
	return problems
}

// fixed is a part of a Cluster that stays as it is.
type fixed struct {
	path string
	of   func(s *anywherev1.ClusterSpec) any
}

// fixedForAll can't be changed without making another cluster of it.
var fixedForAll = []fixed{
	{"spec.datacenterRef", func(s *anywherev1.ClusterSpec) any { return s.DatacenterRef }},
	{controlPlane + ".endpoint", func(s *anywherev1.ClusterSpec) any { return endpointOf(s) }},
	{network + ".pods", func(s *anywherev1.ClusterSpec) any { return s.ClusterNetwork.Pods }},
	{network + ".services", func(s *anywherev1.ClusterSpec) any { return s.ClusterNetwork.Services }},
	{network + ".nodes", func(s *anywherev1.ClusterSpec) any { return maskOf(s) }},
}

// fixedForManagement would have to be carried to the machines that the manager itself runs on.
var fixedForManagement = []fixed{
	{network + ".dns", func(s *anywherev1.ClusterSpec) any { return s.ClusterNetwork.DNS }},
	{"spec.proxyConfiguration", func(s *anywherev1.ClusterSpec) any { return s.ProxyConfiguration }},
}

func immutableProblems(was, is *anywherev1.Cluster) Violations {
	problems := managementChange(was, is)
	problems = append(problems, topologyChange(was, is)...)
	parts := fixedForAll
	if was.IsSelfManaged() {
		parts = append(parts[:len(parts):len(parts)], fixedForManagement...)
		problems = append(problems, gitOpsChange(was, is)...)
	}
	for _, part := range parts {
		if !equality.Semantic.DeepEqual(part.of(&was.Spec), part.of(&is.Spec)) {
			problems = append(problems, one(part.path, "put the old value back, or make a new cluster", "field is immutable")...)
		}
	}
	return problems
}

// managementChange compares what the fields mean: a cluster that names itself is the same as one that names none. A workload cluster that
// names none may name the one that it has.
func managementChange(was, is *anywherev1.Cluster) Violations {
	switch {
	case was.IsSelfManaged() != is.IsSelfManaged():
		return one("spec.management", "put the old value back, or make a new cluster", "management flag is immutable")
	case was.ManagedBy() != "" && was.ManagedBy() != is.ManagedBy():
		return one("spec.managementCluster.name", "put the old value back, or make a new cluster", "management cluster name is immutable")
	}
	return nil
}

func topologyChange(was, is *anywherev1.Cluster) Violations {
	const at = "spec.externalEtcdConfiguration"
	before, after := was.Spec.ExternalEtcdConfiguration != nil, is.Spec.ExternalEtcdConfiguration != nil
	switch {
	case !before && after:
		return one(at, "remove it, or make a new cluster", "cannot switch from stacked to external etcd topology")
	case before && !after:
		return one(at, "put it back, or make a new cluster", "cannot switch from external to stacked etcd topology")
	}
	return nil
}

// gitOpsChange lets a management cluster be put under Git later, once.
func gitOpsChange(was, is *anywherev1.Cluster) Violations {
	if was.Spec.GitOpsRef == nil || reflect.DeepEqual(was.Spec.GitOpsRef, is.Spec.GitOpsRef) {
		return nil
	}
	return one("spec.gitOpsRef", "put the old value back", "field is immutable once it is set")
}

// endpointOf takes an endpoint without a host for none.
func endpointOf(s *anywherev1.ClusterSpec) string {
	if s.ControlPlaneConfiguration.Endpoint == nil {
		return ""
	}
	return s.ControlPlaneConfiguration.Endpoint.Host
}

// maskOf is 0 if the spec does not say.
func maskOf(s *anywherev1.ClusterSpec) int {
	if s.ClusterNetwork.Nodes == nil || s.ClusterNetwork.Nodes.CIDRMaskSize == nil {
		return 0
	}
	return *s.ClusterNetwork.Nodes.CIDRMaskSize
}

// ValidateObjectUpdate says why an object that a Cluster may name can't become another.
func ValidateObjectUpdate(was, is client.Object) Violations {
	if was.GetAnnotations()[anywherev1.PausedAnnotation] == "true" || equality.Semantic.DeepEqual(fixedPart(was), fixedPart(is)) {
		return nil
	}
	return below(is, one("spec", "put the old value back, or name another "+kindOf(is)+" in the Cluster", "field is immutable"))
}

// fixedPart is what can't be changed of an object, nil if all can. An OIDCConfig may change on a workload cluster, which its mark tells.
func fixedPart(o client.Object) any {
	switch o := o.(type) {
	case *anywherev1.PacketDatacenterConfig:
		return packetPlace(o)
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

// packetPlace is where machines are. The name of the credentials may change, as the credentials do.
func packetPlace(d *anywherev1.PacketDatacenterConfig) anywherev1.PacketDatacenterConfigSpec {
	place := d.Spec
	place.CredentialsRef = nil
	return place
}
