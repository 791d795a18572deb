package config_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
)

// annotationLimit is the maximum size of annotations; client-side apply stores the whole object in
// one.
const annotationLimit = 262144

func TestCRDsFitTheLastAppliedAnnotation(t *testing.T) {
	for _, m := range config.CRDs() {
		data, err := yaml.YAMLToJSON(m.Data)
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if len(data) >= annotationLimit {
			t.Errorf("%s is %d bytes of JSON, the limit is %d", m.Name, len(data), annotationLimit)
		}
	}
}

func TestCRDsHaveProviderAndContractLabels(t *testing.T) {
	for _, m := range config.CRDs() {
		crd := decode[apiextensionsv1.CustomResourceDefinition](t, m)
		if crd.Name != m.Name {
			t.Errorf("file %s holds %s", m.Name, crd.Name)
		}
		if crd.Labels[config.LabelPartOf] != config.PartOf {
			t.Errorf("%s is not labeled as ours", m.Name)
		}
		if _, ok := crd.Labels["clusterctl.cluster.x-k8s.io"]; !ok {
			t.Errorf("%s is not labeled for clusterctl", m.Name)
		}
		want := map[string]string{
			"bootstrap-kubeadm": "v1beta2", "control-plane-kubeadm": "v1beta2", "infrastructure-packet": "v1beta1",
		}[crd.Labels["cluster.x-k8s.io/provider"]]
		if got := crd.Labels["cluster.x-k8s.io/v1beta2"]; got != want {
			t.Errorf("%s: contract label %q, want %q", m.Name, got, want)
		}
	}
}

func TestPrinterColumnsShowExistingFields(t *testing.T) {
	for _, m := range config.CRDs() {
		crd := decode[apiextensionsv1.CustomResourceDefinition](t, m)
		if crd.Labels["cluster.x-k8s.io/provider"] != "infrastructure-packet" {
			continue
		}
		version := crd.Spec.Versions[0]
		for _, column := range version.AdditionalPrinterColumns {
			if path := strings.Split(strings.Trim(column.JSONPath, "."), "."); path[0] != "metadata" && !declares(version.Schema.OpenAPIV3Schema, path) {
				t.Errorf("%s: column %s shows %s, which is not declared", m.Name, column.Name, column.JSONPath)
			}
		}
	}
}

// declares reports whether a schema has a field.
func declares(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	if len(path) == 0 {
		return true
	}
	child, ok := schema.Properties[path[0]]
	return ok && declares(&child, path[1:])
}

func TestConversionWebhookUsesTheService(t *testing.T) {
	for _, m := range config.CRDs() {
		crd := decode[apiextensionsv1.CustomResourceDefinition](t, m)
		if crd.Labels[config.LabelInjectCA] == "" {
			if len(crd.Spec.Versions) > 1 {
				t.Errorf("%s has several versions and no conversion", m.Name)
			}
			continue
		}
		service := crd.Spec.Conversion.Webhook.ClientConfig.Service
		if service.Namespace != config.Namespace || service.Name != config.WebhookService || *service.Path != "/convert" {
			t.Errorf("%s is converted by %+v", m.Name, service)
		}
		if crd.Spec.Conversion.Webhook.ClientConfig.CABundle != nil {
			t.Errorf("%s carries a CA bundle, which belongs to the manager", m.Name)
		}
	}
}

func TestRBACRulesHaveNoWildcards(t *testing.T) {
	for _, m := range config.RBAC() {
		role := decode[rbacv1.ClusterRole](t, m)
		for _, rule := range role.Rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames, rule.NonResourceURLs} {
				if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") }) {
					t.Errorf("%s has a wildcard: %+v", m.Name, rule)
				}
			}
		}
	}
}

func TestEveryRBACRuleHasAComment(t *testing.T) {
	for _, m := range config.RBAC() {
		lines := strings.Split(string(m.Data), "\n")
		for i, line := range lines {
			if line == "rules:" && !strings.HasPrefix(lines[i+1], "#") && m.Name != "metrics_reader_role" {
				t.Errorf("%s: the first rule has no comment", m.Name)
			}
		}
	}
}

func TestRoleAllowsWritingOnlyOwnCRDsAndWebhooks(t *testing.T) {
	want := map[string][]string{
		"mutatingwebhookconfigurations":   {config.MutatingWebhooks},
		"validatingwebhookconfigurations": {config.ValidatingWebhooks},
	}
	for _, m := range config.CRDs() {
		if crd := decode[apiextensionsv1.CustomResourceDefinition](t, m); crd.Labels[config.LabelInjectCA] == "true" {
			want["customresourcedefinitions"] = append(want["customresourcedefinitions"], crd.Name)
		}
	}
	got := map[string][]string{}
	for _, rule := range managerRole(t).Rules {
		for _, resource := range rule.Resources {
			if _, ok := want[resource]; ok && slices.Contains(rule.Verbs, "patch") {
				got[resource] = append(got[resource], rule.ResourceNames...)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names that may be written (-want +got):\n%s", diff)
	}
}

func TestEveryServedKindHasAWebhookOrIsReadOnly(t *testing.T) {
	hooked := map[string]bool{}
	for _, m := range config.Webhooks() {
		c := decode[admissionv1.ValidatingWebhookConfiguration](t, m)
		if c.Labels[config.LabelInjectCA] != "true" {
			t.Errorf("%s is not labeled for CA injection", m.Name)
		}
		for _, w := range c.Webhooks {
			service := w.ClientConfig.Service
			if service.Namespace != config.Namespace || service.Name != config.WebhookService {
				t.Errorf("webhook %s calls %+v", w.Name, service)
			}
			for _, rule := range w.Rules {
				for _, resource := range rule.Resources {
					hooked[resource+"."+rule.APIGroups[0]] = true
				}
			}
		}
	}
	// One is clusterctl's own, the schema of the second allows no change, and those of external etcd
	// contain all their rules.
	alone := []string{
		"providers.clusterctl.cluster.x-k8s.io", "auditrecords.drover.dev",
		"etcdadmclusters.etcdcluster.cluster.x-k8s.io", "etcdadmconfigs.bootstrap.cluster.x-k8s.io",
	}
	for _, m := range config.CRDs() {
		if !slices.Contains(alone, m.Name) && !hooked[m.Name] {
			t.Errorf("%s has no admission webhook", m.Name)
		}
	}
}

func TestDeploymentIsRestrictedAndReplicated(t *testing.T) {
	var d appsv1.Deployment
	for _, m := range config.Manager() {
		if m.Name == "deployment" {
			d = decode[appsv1.Deployment](t, m)
		}
	}
	if *d.Spec.Replicas != 2 {
		t.Errorf("replicas: %d", *d.Spec.Replicas)
	}
	pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	switch {
	case !*pod.SecurityContext.RunAsNonRoot, pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault":
		t.Errorf("pod security context: %+v", pod.SecurityContext)
	case *c.SecurityContext.AllowPrivilegeEscalation, !*c.SecurityContext.ReadOnlyRootFilesystem, c.SecurityContext.Capabilities.Drop[0] != "ALL":
		t.Errorf("container security context: %+v", c.SecurityContext)
	case c.Resources.Requests.Memory().IsZero(), c.Resources.Requests.Cpu().IsZero():
		t.Errorf("requests: %v", c.Resources.Requests)
	case c.LivenessProbe == nil, c.ReadinessProbe == nil:
		t.Error("probes are missing")
	case c.Image != config.ImagePlaceholder:
		t.Errorf("image: %s", c.Image)
	}
}

func managerRole(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	for _, m := range config.RBAC() {
		if m.Name == "manager_role" {
			return decode[rbacv1.ClusterRole](t, m)
		}
	}
	t.Fatal("no manager role")
	return rbacv1.ClusterRole{}
}

func decode[T any](t *testing.T, m config.Manifest) T {
	t.Helper()
	var out T
	data, err := yaml.YAMLToJSON(m.Data)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatalf("decoding %s: %v", m.Name, err)
	}
	return out
}

func TestEveryNamespaceIsRestrictedAndHasANetworkPolicy(t *testing.T) {
	policies := map[string]int{}
	for _, m := range config.Manager() {
		if policy := decode[networkingv1.NetworkPolicy](t, m); policy.Kind == "NetworkPolicy" {
			policies[policy.Namespace]++
			if len(policy.Spec.PodSelector.MatchLabels)+len(policy.Spec.PodSelector.MatchExpressions) > 0 {
				t.Errorf("%s does not apply to all Pods", m.Name)
			}
		}
	}
	for _, m := range append(config.RBAC(), config.NamespaceManifest()) {
		namespace := decode[corev1.Namespace](t, m)
		if namespace.Kind != "Namespace" {
			continue
		}
		if namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" || policies[namespace.Name] != 1 {
			t.Errorf("namespace %s has labels %v and %d network policies", namespace.Name, namespace.Labels, policies[namespace.Name])
		}
	}
}

func TestNetworkPolicyAllowsThePortsOfTheManager(t *testing.T) {
	allowed, served := map[int32]bool{}, map[int32]bool{}
	for _, m := range config.Manager() {
		switch m.Name {
		case "network_policy":
			for _, p := range decode[networkingv1.NetworkPolicy](t, m).Spec.Ingress[0].Ports {
				allowed[p.Port.IntVal] = true
			}
		case "deployment":
			for _, p := range decode[appsv1.Deployment](t, m).Spec.Template.Spec.Containers[0].Ports {
				served[p.ContainerPort] = true
			}
		}
	}
	if diff := cmp.Diff(served, allowed); diff != "" || len(served) == 0 {
		t.Errorf("ports (-served +allowed):\n%s", diff)
	}
}
