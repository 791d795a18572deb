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

// clusterRules are what can be said of a Cluster alone, in the order of its spec. Each looks at one thing, and none relies on another.
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
	etcdRule,
	identityRule, gitOpsRule,
	proxyRule, noProxyRule, mirrorRule, mirroredRule,
	healthRule, encryptionRule,
	eksaVersionRule,
	refusedRule,
}

// Validate says all that is wrong with a spec that has its defaults: with the Cluster, with the objects that it names, and with how they
// go together.
func Validate(c *Config) Violations {
	if c.Cluster == nil {
		return one("", "add an object of kind Cluster", "there is no Cluster")
	}
	problems := ValidateCluster(c.Cluster)
	for _, o := range c.Objects() {
		if kindOf(o) != anywherev1.ClusterKind {
			problems = append(problems, ValidateObject(o)...)
		}
	}
	problems = append(problems, without(missingRule(c), problems)...)
	return append(problems, namespaceRule(c)...)
}

// ValidateCluster says what is wrong with a Cluster that has its defaults, whatever there is beside it.
func ValidateCluster(c *anywherev1.Cluster) Violations {
	var problems Violations
	for _, rule := range clusterRules {
		problems = append(problems, rule(c)...)
	}
	return problems
}

// ValidateObject says what is wrong with an object that a Cluster may name.
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
	return below(o, problems)
}

// below names the object in the paths.
func below(o client.Object, problems Violations) Violations {
	for i := range problems {
		problems[i].Path = kindOf(o) + "/" + printable(o.GetName()) + ": " + problems[i].Path
	}
	return problems
}

// missingRule wants all objects that the Cluster names and that Drover has a kind for.
func missingRule(c *Config) Violations {
	there := map[anywherev1.Ref]bool{}
	for _, o := range c.Objects() {
		there[anywherev1.Ref{Kind: kindOf(o), Name: o.GetName()}] = true
	}
	var problems Violations
	for _, p := range places(c.Cluster) {
		if slices.Contains(kinds, p.ref.Kind) && p.ref.Kind != anywherev1.ClusterKind && p.ref.Name != "" && !there[p.ref] {
			problems = append(problems, one(p.path+".name", missingRemedy(c, p.ref), "%s %s not found", p.ref.Kind, printable(p.ref.Name))...)
		}
	}
	return problems
}

// missingRemedy knows of objects of the kind that the Cluster does not name.
func missingRemedy(c *Config, ref anywherev1.Ref) string {
	for _, id := range c.Ignored {
		if strings.HasPrefix(id, ref.Kind+"/") {
			return "add it, or name " + printable(id) + " instead, which is there"
		}
	}
	return "add an object of kind " + ref.Kind + " with this name"
}

// namespaceRule keeps a Cluster and what it names together.
func namespaceRule(c *Config) Violations {
	var problems Violations
	for _, o := range c.Objects() {
		if o.GetNamespace() != c.Cluster.Namespace {
			problems = append(problems, below(o, one("metadata.namespace", "put it in namespace "+printable(c.Cluster.Namespace),
				"%s and Cluster objects must have the same namespace specified", kindOf(o)))...)
		}
	}
	return problems
}

// one is a single violation.
func one(path, remedy, format string, args ...any) Violations {
	return Violations{{Path: path, Problem: fmt.Sprintf(format, args...), Remedy: remedy}}
}

// eachGroup asks about each group of workers, with its path.
func eachGroup(c *anywherev1.Cluster, ask func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations) Violations {
	var problems Violations
	for i := range c.Spec.WorkerNodeGroupConfigurations {
		problems = append(problems, ask(&c.Spec.WorkerNodeGroupConfigurations[i], fmt.Sprintf("%s[%d]", workers, i))...)
	}
	return problems
}

// remote says whether the machines are behind the Packet API.
func remote(c *anywherev1.Cluster) bool {
	return c.Spec.DatacenterRef.Kind == anywherev1.PacketDatacenterConfigKind
}

// local says whether the machines are those of a host.
func local(c *anywherev1.Cluster) bool {
	return c.Spec.DatacenterRef.Kind == anywherev1.DockerDatacenterConfigKind
}
