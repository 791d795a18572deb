package spec

import (
	"fmt"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// identityRule: an API server trusts one issuer of tokens.
func identityRule(c *anywherev1.Cluster) Violations {
	var problems Violations
	issuers := 0
	for i, ref := range c.Spec.IdentityProviderRefs {
		at := fmt.Sprintf("spec.identityProviderRefs[%d]", i)
		switch ref.Kind {
		case anywherev1.OIDCConfigKind:
			issuers++
			problems = append(problems, nameOf(at, ref)...)
		case awsIAM:
			problems = append(problems, one(at+".kind", remedyForKind(awsIAM), "%s is not supported", awsIAM)...)
		default:
			problems = append(problems, one(at+".kind", "use "+anywherev1.OIDCConfigKind, "%q is not an identity provider", printable(ref.Kind))...)
		}
	}
	if issuers > 1 {
		problems = append(problems, one("spec.identityProviderRefs", "keep one of them", "only one %s is supported", anywherev1.OIDCConfigKind)...)
	}
	return problems
}

func gitOpsRule(c *anywherev1.Cluster) Violations {
	ref := c.Spec.GitOpsRef
	if ref == nil {
		return nil
	}
	if ref.Kind != anywherev1.FluxConfigKind && ref.Kind != anywherev1.GitOpsConfigKind {
		return one("spec.gitOpsRef.kind", "use "+anywherev1.FluxConfigKind, "only %s or %s is supported, not %q",
			anywherev1.FluxConfigKind, anywherev1.GitOpsConfigKind, printable(ref.Kind))
	}
	return nameOf("spec.gitOpsRef", *ref)
}

// refusal is a field that has a type, because specs in the wild have it, and no meaning here.
type refusal struct {
	path    string
	set     func(s *anywherev1.ClusterSpec) bool
	problem string
	remedy  string
}

var refusals = []refusal{{
	path:    controlPlane + ".skipLoadBalancerDeployment",
	set:     func(s *anywherev1.ClusterSpec) bool { return s.ControlPlaneConfiguration.SkipLoadBalancerDeployment },
	problem: "the address of the API servers is always looked after by Drover",
	remedy:  "remove it",
}, {
	path: controlPlane + ".skipAdmissionForSystemResources",
	set: func(s *anywherev1.ClusterSpec) bool {
		skip := s.ControlPlaneConfiguration.SkipAdmissionForSystemResources
		return skip != nil && *skip
	},
	problem: "API servers of Kubernetes don't have this",
	remedy:  "remove it, and let the admission webhooks themselves leave out kube-system",
}, {
	path:    "spec.podIamConfig",
	set:     func(s *anywherev1.ClusterSpec) bool { return s.PodIAMConfig != nil },
	problem: "roles of a cloud for pods are not supported",
	remedy:  "remove it; an issuer of your own can be set with controlPlaneConfiguration.apiServerExtraArgs: {service-account-issuer: …}",
}, {
	path:    "spec.bundlesRef",
	set:     func(s *anywherev1.ClusterSpec) bool { return s.BundlesRef != nil && s.EksaVersion != "" },
	problem: "bundlesRef and eksaVersion must not both be set",
	remedy:  "remove bundlesRef",
}, {
	path:    "spec.bundlesRef",
	set:     func(s *anywherev1.ClusterSpec) bool { return s.BundlesRef != nil && s.EksaVersion == "" },
	problem: "bundlesRef is not supported: a Drover has all that it installs",
	remedy:  "remove it",
}}

// refusedRule refuses what can't be acted on, so that nobody takes it for done.
func refusedRule(c *anywherev1.Cluster) Violations {
	var problems Violations
	for _, r := range refusals {
		if r.set(&c.Spec) {
			problems = append(problems, one(r.path, r.remedy, "%s", r.problem)...)
		}
	}
	problems = append(problems, packagesProblems(c)...)
	return append(problems, eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		if len(g.FailureDomains) == 0 {
			return nil
		}
		return one(path+".failureDomains", "remove it, and use a group for each place", "failure domains of workers are not supported")
	})...)
}

// packagesProblems: packages are installed by the one manager, which has no process and no job for each cluster.
func packagesProblems(c *anywherev1.Cluster) Violations {
	p := c.Spec.Packages
	if p == nil {
		return nil
	}
	problem := "packages are installed by Drover's manager, which has no such part"
	if c.IsManaged() {
		problem = "can't be set for a workload cluster: its management cluster installs packages"
	}
	var problems Violations
	if p.Controller != nil {
		problems = one("spec.packages.controller", "remove it", "%s", problem)
	}
	if p.CronJob != nil {
		problems = append(problems, one("spec.packages.cronjob", "remove it", "%s", problem)...)
	}
	return problems
}
