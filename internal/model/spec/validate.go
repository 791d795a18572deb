package spec

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// Paths of the parts of a Cluster.
const (
	controlPlane = "spec.controlPlaneConfiguration"
	workers      = "spec.workerNodeGroupConfigurations"
	network      = "spec.clusterNetwork"
)

// clusterRules are the rules for a Cluster without its references, in the order of the spec. Each
// checks one thing and does not rely on another.
var clusterRules = []func(*anywherev1.Cluster) Violations{
	nameRule, nameLengthRule,
	versionRule, groupVersionRule, skewRule,
	managementRule, managementNameRule,
	datacenterRule,
	controlPlaneCountRule, endpointRule, controlPlaneMachinesRule, controlPlaneTaintsRule, controlPlaneLabelsRule, controlPlaneRolloutRule,
	certSANsRule, apiServerArgsRule, auditPolicyRule, controlPlaneHealthRule, controlPlaneKubeletRule,
	groupNamesRule, groupCountsRule, groupScalingRule, groupMachinesRule, groupTaintsRule, groupLabelsRule, groupRolloutRule, groupHealthRule,
	groupKubeletRule, untaintedRule,
	blocksRule, overlapRule, maskRule, cniRule, ciliumRule, resolvConfRule,
	etcdCountRule, etcdMachinesRule, etcdGroupRule,
	identityRule, gitOpsRule,
	proxyRule, noProxyRule, mirrorRule, mirroredRule,
	healthRule, encryptionRule, podIAMRule,
	eksaVersionRule,
	droverVersionRule, addOnWaitRule,
	unsupportedRule,
}

// Validate returns every problem of a spec with defaults: of the Cluster, of the objects that it
// references, and of their combination.
func Validate(c *Config) Violations {
	if c.Cluster == nil {
		return violation("", "add an object of kind Cluster", "no Cluster found")
	}
	problems := ValidateCluster(c.Cluster)
	for _, o := range c.Objects() {
		if kindOf(o) != anywherev1.ClusterKind {
			problems = append(problems, ValidateObject(o)...)
		}
	}
	problems = append(problems, notWithin(missingRule(c), problems)...)
	return append(problems, namespaceRule(c)...)
}

// ValidateCluster returns every problem of a Cluster with defaults, ignoring the objects that it
// references.
func ValidateCluster(c *anywherev1.Cluster) Violations {
	var problems Violations
	for _, rule := range clusterRules {
		problems = append(problems, rule(c)...)
	}
	return problems
}

// ValidateNew returns the problems of a new Cluster that an existing one may have.
func ValidateNew(c *anywherev1.Cluster) Violations { return endpointBlockRule(c) }

// ValidateObject returns every problem of an object that a Cluster may reference.
func ValidateObject(o client.Object) Violations {
	var problems Violations
	switch o := o.(type) {
	case *anywherev1.PacketDatacenterConfig:
		problems = packetProblems(&o.Spec)
	case *anywherev1.PacketMachineConfig:
		problems = machineProblems(&o.Spec)
	case *anywherev1.FluxConfig:
		problems = fluxProblems(&o.Spec)
	case *anywherev1.GitOpsConfig:
		problems = gitOpsProblems(&o.Spec.Flux.Github)
	case *anywherev1.OIDCConfig:
		problems = oidcProblems(&o.Spec)
	}
	return inObject(o, problems)
}

// inObject prefixes the paths with the object.
func inObject(o client.Object, problems Violations) Violations {
	for i := range problems {
		problems[i].Path = kindOf(o) + "/" + printable(o.GetName()) + ": " + problems[i].Path
	}
	return problems
}

// missingRule requires every object of a supported kind that the Cluster references.
func missingRule(c *Config) Violations {
	exists := map[anywherev1.Ref]bool{}
	for _, o := range c.Objects() {
		exists[anywherev1.Ref{Kind: kindOf(o), Name: o.GetName()}] = true
	}
	var problems Violations
	for _, p := range places(c.Cluster) {
		if slices.Contains(kinds, p.ref.Kind) && p.ref.Kind != anywherev1.ClusterKind && p.ref.Name != "" && !exists[p.ref] {
			problems = append(problems, violation(p.path+".name", missingRemedy(c, p.ref), "%s %s not found", p.ref.Kind, printable(p.ref.Name))...)
		}
	}
	return problems
}

// missingRemedy suggests an object of the same kind that the Cluster does not reference.
func missingRemedy(c *Config, ref anywherev1.Ref) string {
	for _, id := range c.Ignored {
		if strings.HasPrefix(id, ref.Kind+"/") {
			return "add it, or use " + printable(id)
		}
	}
	return "add an object of kind " + ref.Kind + " with this name"
}

// namespaceRule requires one namespace for a Cluster and the objects that it references.
func namespaceRule(c *Config) Violations {
	var problems Violations
	for _, o := range c.Objects() {
		if o.GetNamespace() != c.Cluster.Namespace {
			problems = append(problems, inObject(o, violation("metadata.namespace", "set it to "+printable(c.Cluster.Namespace),
				"%s and Cluster objects must have the same namespace specified", kindOf(o)))...)
		}
	}
	return problems
}

// violation returns a single violation.
func violation(path, remedy, format string, args ...any) Violations {
	return Violations{{Path: path, Problem: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// eachGroup checks each worker group.
func eachGroup(c *anywherev1.Cluster, check func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations) Violations {
	var problems Violations
	for i := range c.Spec.WorkerNodeGroupConfigurations {
		problems = append(problems, check(&c.Spec.WorkerNodeGroupConfigurations[i], fmt.Sprintf("%s[%d]", workers, i))...)
	}
	return problems
}

// remote reports whether a Packet API provides the machines.
func remote(c *anywherev1.Cluster) bool {
	return c.Spec.DatacenterRef.Kind == anywherev1.PacketDatacenterConfigKind
}

// local reports whether the machines run on this host.
func local(c *anywherev1.Cluster) bool {
	return c.Spec.DatacenterRef.Kind == anywherev1.DockerDatacenterConfigKind
}
