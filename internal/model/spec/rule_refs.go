package spec

import (
	"fmt"
	"regexp"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// identityRule allows one issuer of tokens, which is the limit of an API server.
func identityRule(c *anywherev1.Cluster) Violations {
	var problems Violations
	issuers := 0
	for i, ref := range c.Spec.IdentityProviderRefs {
		at := fmt.Sprintf("spec.identityProviderRefs[%d]", i)
		switch ref.Kind {
		case anywherev1.OIDCConfigKind:
			issuers++
			problems = append(problems, refNameProblems(at, ref)...)
		case awsIAM:
			problems = append(problems, violation(at+".kind", remedyForKind(awsIAM), "%s is not supported", awsIAM)...)
		default:
			problems = append(problems, violation(at+".kind", "use "+anywherev1.OIDCConfigKind, "%q is not an identity provider", printable(ref.Kind))...)
		}
	}
	if issuers > 1 {
		problems = append(problems, violation("spec.identityProviderRefs", "keep one of them", "only one %s is supported", anywherev1.OIDCConfigKind)...)
	}
	return problems
}

func gitOpsRule(c *anywherev1.Cluster) Violations {
	ref := c.Spec.GitOpsRef
	if ref == nil {
		return nil
	}
	if ref.Kind != anywherev1.FluxConfigKind && ref.Kind != anywherev1.GitOpsConfigKind {
		return violation("spec.gitOpsRef.kind", "use "+anywherev1.FluxConfigKind, "only %s or %s is supported, not %q",
			anywherev1.FluxConfigKind, anywherev1.GitOpsConfigKind, printable(ref.Kind))
	}
	return refNameProblems("spec.gitOpsRef", *ref)
}

// unsupported is a field that exists in the API for the sake of existing specs, and that Drover
// does not support.
type unsupported struct {
	path    string
	set     func(s *anywherev1.ClusterSpec) bool
	problem string
	remedy  string
}

var unsupportedFields = []unsupported{{
	path:    controlPlane + ".skipLoadBalancerDeployment",
	set:     func(s *anywherev1.ClusterSpec) bool { return s.ControlPlaneConfiguration.SkipLoadBalancerDeployment },
	problem: "Drover always manages the endpoint of the API servers",
	remedy:  "remove it",
}, {
	path: controlPlane + ".skipAdmissionForSystemResources",
	set: func(s *anywherev1.ClusterSpec) bool {
		skip := s.ControlPlaneConfiguration.SkipAdmissionForSystemResources
		return skip != nil && *skip
	},
	problem: "Kubernetes API servers do not support this",
	remedy:  "remove it, and exclude kube-system in the admission webhooks",
}, {
	path:    "spec.bundlesRef",
	set:     func(s *anywherev1.ClusterSpec) bool { return s.BundlesRef != nil && s.EksaVersion != "" },
	problem: "bundlesRef and eksaVersion must not both be set",
	remedy:  "remove bundlesRef",
}, {
	path:    "spec.bundlesRef",
	set:     func(s *anywherev1.ClusterSpec) bool { return s.BundlesRef != nil && s.EksaVersion == "" },
	problem: "bundlesRef is not supported: Drover contains everything that it installs",
	remedy:  "remove it",
}}

// unsupportedRule rejects unsupported fields, so that nobody relies on them.
func unsupportedRule(c *anywherev1.Cluster) Violations {
	var problems Violations
	for _, r := range unsupportedFields {
		if r.set(&c.Spec) {
			problems = append(problems, violation(r.path, r.remedy, "%s", r.problem)...)
		}
	}
	problems = append(problems, packagesProblems(c)...)
	return append(problems, eachGroup(c, func(g *anywherev1.WorkerNodeGroupConfiguration, path string) Violations {
		return failureDomainProblems(c, g.FailureDomains, path+".failureDomains")
	})...)
}

// metro is the code of a metro.
var metro = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// failureDomainProblems allows one metro per group: a MachineDeployment can't spread its machines,
// and dividing a group among several would break its count and its rollout.
func failureDomainProblems(c *anywherev1.Cluster, domains []string, at string) Violations {
	switch {
	case len(domains) == 0:
		return nil
	case !remote(c):
		return violation(at, "remove it", "local machines have no failure domains: all of them run on one host")
	case len(domains) > 1:
		return violation(at, "use one group per metro", "a group can be in one failure domain only, not in %d", len(domains))
	case !metro.MatchString(domains[0]):
		return violation(at+"[0]", "use the code of a metro, such as da", "%q is not a metro", printable(domains[0]))
	}
	return nil
}

// packagesProblems rejects settings of a package controller per cluster: the manager installs
// packages.
func packagesProblems(c *anywherev1.Cluster) Violations {
	p := c.Spec.Packages
	if p == nil {
		return nil
	}
	problem := "is not supported: Drover's manager installs packages"
	if c.IsManaged() {
		problem = "can't be set for a workload cluster: its management cluster installs packages"
	}
	var problems Violations
	if p.Controller != nil {
		problems = violation("spec.packages.controller", "remove it", "%s", problem)
	}
	if p.CronJob != nil {
		problems = append(problems, violation("spec.packages.cronjob", "remove it", "%s", problem)...)
	}
	return problems
}
