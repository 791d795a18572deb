package spec

import (
	"fmt"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func certSANsRule(c *anywherev1.Cluster) Violations {
	var problems Violations
	for i, name := range c.Spec.ControlPlaneConfiguration.CertSANs {
		if !isSAN(name) {
			problems = append(problems, violation(fmt.Sprintf("%s.certSans[%d]", controlPlane, i), "use an IP address or a domain", "%q is neither an IP address nor a domain", printable(name))...)
		}
	}
	return problems
}

func isSAN(name string) bool {
	return isHost(name) || len(validation.IsWildcardDNS1123Subdomain(name)) == 0 && !endsInNumber(name)
}

// flagName is the format of flags of API servers.
var flagName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// apiServerArgsRule rejects flags that another field sets.
func apiServerArgsRule(c *anywherev1.Cluster) Violations {
	var problems Violations
	issuer := slices.ContainsFunc(c.Spec.IdentityProviderRefs, func(r anywherev1.Ref) bool { return r.Kind == anywherev1.OIDCConfigKind })
	for _, flag := range sortedKeys(c.Spec.ControlPlaneConfiguration.APIServerExtraArgs) {
		at := controlPlane + ".apiServerExtraArgs[" + printable(flag) + "]"
		switch {
		case !flagName.MatchString(flag):
			problems = append(problems, violation(at, "write the flag without leading dashes, such as audit-log-maxage", "is not a valid flag name")...)
		case issuer && strings.HasPrefix(flag, "oidc-"):
			problems = append(problems, violation(at, "remove the flag, or the OIDCConfig from identityProviderRefs", "can't be set together with an OIDCConfig")...)
		case flag == IssuerArgument && c.Spec.PodIAMConfig != nil:
			problems = append(problems, violation(at, "remove the flag, or podIamConfig", "can't be set together with podIamConfig")...)
		case flag == EncryptionArgument && len(c.Spec.EtcdEncryption) > 0:
			problems = append(problems, violation(at, "remove the flag, or etcdEncryption", "can't be set together with etcdEncryption")...)
		}
	}
	return problems
}

// IssuerArgument is the flag of API servers that podIamConfig sets.
const IssuerArgument = "service-account-issuer"

// podIAMRule requires an issuer whose keys others can find. API servers don't start with an invalid
// one.
func podIAMRule(c *anywherev1.Cluster) Violations {
	const at, remedy = "spec.podIamConfig.serviceAccountIssuer", "use the https:// URL under which the keys of the cluster are published"
	p := c.Spec.PodIAMConfig
	switch {
	case p == nil:
		return nil
	case p.ServiceAccountIssuer == "":
		return violation(at, remedy, "service account issuer can't be empty")
	case !isIssuer(p.ServiceAccountIssuer):
		return violation(at, remedy, "%q is not a valid issuer URL", printable(p.ServiceAccountIssuer))
	}
	return nil
}

// isIssuer reports whether a URL can be the issuer of tokens.
func isIssuer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// auditPolicyRule parses a policy as an API server would, which does not start with an invalid one.
func auditPolicyRule(c *anywherev1.Cluster) Violations {
	const at = controlPlane + ".auditPolicyContent"
	text := c.Spec.ControlPlaneConfiguration.AuditPolicyContent
	if text == "" {
		return nil
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return violation(at, "correct the YAML", "%s", parserText(err))
	}
	policy, problem := objectOf(&node)
	switch {
	case problem != "":
		return violation(at, "use a Policy of audit.k8s.io/v1", "%s", problem)
	case policy["apiVersion"] != auditv1.SchemeGroupVersion.String() || policy["kind"] != "Policy":
		return violation(at, "begin with apiVersion: audit.k8s.io/v1 and kind: Policy", "is not a Policy of audit.k8s.io/v1")
	}
	f := &fitting{prefix: at + ": "}
	f.fit(policy, reflect.TypeFor[auditv1.Policy](), "")
	if rules, _ := policy["rules"].([]any); len(rules) == 0 {
		f.problem("rules", "add a rule, such as {level: Metadata}", "at least one rule is required")
	}
	return f.problems
}

// encryptionRule requires a key of the cluster, which encrypts Secrets only, or one plugin with a
// socket that API servers can reach.
func encryptionRule(c *anywherev1.Cluster) Violations {
	var problems Violations
	if len(c.Spec.EtcdEncryption) > 1 {
		problems = violation("spec.etcdEncryption", "list all resources in one entry", "only one entry is supported")
	}
	for i, e := range c.Spec.EtcdEncryption {
		at := fmt.Sprintf("spec.etcdEncryption[%d]", i)
		if len(e.Resources) == 0 || slices.Contains(e.Resources, "") {
			problems = append(problems, violation(at+".resources", "list the resources to encrypt, such as secrets", "is empty or contains an empty entry")...)
		}
		problems = append(problems, providerProblems(e, at)...)
	}
	return problems
}

func providerProblems(e anywherev1.EtcdEncryption, at string) Violations {
	if len(e.Providers) != 1 || (e.Providers[0].KMS == nil) == (e.Providers[0].Secretbox == nil) {
		return violation(at+".providers", "configure one provider, kms or secretbox", "exactly one kms or secretbox provider is required")
	}
	if kms := e.Providers[0].KMS; kms != nil {
		return kmsProblems(kms, at+".providers[0].kms")
	}
	if !slices.Equal(e.Resources, []string{secrets}) {
		return violation(at+".resources", "write resources: [secrets]", "a secretbox provider encrypts secrets only")
	}
	return nil
}

func kmsProblems(k *anywherev1.KMS, at string) Violations {
	var problems Violations
	switch {
	case k.Name == "":
		problems = violation(at+".name", "name the plugin", "is not set")
	case strings.Contains(k.Name, ":"):
		problems = violation(at+".name", "use a name without colons", "contains a colon, which API servers reject")
	}
	if socket, ok := strings.CutPrefix(k.SocketListenAddress, "unix://"); !ok || !path.IsAbs(socket) || path.Clean(socket) != socket {
		problems = append(problems, violation(at+".socketListenAddress", "write it as unix:///var/run/kmsplugin/socket.sock", "is not a socket address")...)
	}
	if k.CacheSize != nil && *k.CacheSize < 0 {
		problems = append(problems, violation(at+".cachesize", "use 1000, or leave it out", "must not be negative")...)
	}
	return append(problems, durationProblems(k.Timeout, time.Millisecond, at+".timeout")...)
}
