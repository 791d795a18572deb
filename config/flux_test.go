package config_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drover-dev/drover/config"
)

func TestFluxObjectsCarryUpstreamsLabels(t *testing.T) {
	for _, m := range slices.Concat([]config.Manifest{config.FluxNamespaceManifest()}, config.FluxCRDs(), config.FluxRBAC()) {
		labels := decode[corev1.Namespace](t, m).Labels
		if labels[config.LabelPartOf] != config.FluxPartOf || labels["app.kubernetes.io/instance"] != config.FluxNamespace {
			t.Errorf("%s has labels %v", m.Name, labels)
		}
	}
}

func TestFluxCRDsNeedNoConversion(t *testing.T) {
	for _, m := range config.FluxCRDs() {
		crd := decode[apiextensionsv1.CustomResourceDefinition](t, m)
		if crd.Name != m.Name || crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
			t.Errorf("file %s holds %s, converted by %+v", m.Name, crd.Name, crd.Spec.Conversion)
		}
	}
}

func TestOnlyKustomizeControllerIsAdministrator(t *testing.T) {
	for _, m := range config.FluxRBAC() {
		binding := decode[rbacv1.ClusterRoleBinding](t, m)
		if binding.Kind != "ClusterRoleBinding" {
			continue
		}
		admin, subject := binding.RoleRef.Name == "cluster-admin", binding.Subjects[0].Name
		if len(binding.Subjects) != 1 || admin != (subject == config.FluxKustomize) {
			t.Errorf("%s binds %v to %s", m.Name, binding.Subjects, binding.RoleRef.Name)
		}
	}
}

func TestSourceControllerReadsSecretsAndWritesOnlySources(t *testing.T) {
	for _, m := range config.FluxRBAC() {
		for _, rule := range decode[rbacv1.ClusterRole](t, m).Rules {
			sources := slices.Equal(rule.APIGroups, []string{"source.toolkit.fluxcd.io"})
			events := slices.Equal(rule.Resources, []string{"events"})
			if writes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) }); writes && !sources && !events {
				t.Errorf("%s allows %v", m.Name, rule)
			}
			if strings.Contains(strings.Join(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), " "), "*") {
				t.Errorf("%s has a wildcard: %v", m.Name, rule)
			}
		}
	}
}

// fluxDeployments returns the Deployments by name.
func fluxDeployments(t *testing.T) map[string]appsv1.Deployment {
	t.Helper()
	found := map[string]appsv1.Deployment{}
	for _, m := range config.FluxManager(config.FluxImages{Source: "example/source:1", Kustomize: "example/kustomize:1"}) {
		if d := decode[appsv1.Deployment](t, m); d.Kind == "Deployment" {
			found[d.Name] = d
		}
	}
	return found
}

func TestFluxDeploymentsAreRestricted(t *testing.T) {
	images := map[string]string{config.FluxSource: "example/source:1", config.FluxKustomize: "example/kustomize:1"}
	found := fluxDeployments(t)
	for name, image := range images {
		d, ok := found[name]
		if !ok {
			t.Fatalf("no Deployment %s", name)
		}
		pod, c := d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
		switch {
		case d.Namespace != config.FluxNamespace, pod.ServiceAccountName != name, c.Image != image:
			t.Errorf("%s is in %s, runs %s as %s", name, d.Namespace, c.Image, pod.ServiceAccountName)
		case !*pod.SecurityContext.RunAsNonRoot, pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault":
			t.Errorf("pod security context of %s: %+v", name, pod.SecurityContext)
		case *c.SecurityContext.AllowPrivilegeEscalation, !*c.SecurityContext.ReadOnlyRootFilesystem, c.SecurityContext.Capabilities.Drop[0] != "ALL":
			t.Errorf("container security context of %s: %+v", name, c.SecurityContext)
		case c.Resources.Requests.Memory().IsZero(), c.LivenessProbe == nil, c.ReadinessProbe == nil:
			t.Errorf("%s has no requests or no probes", name)
		}
	}
}

func TestKustomizationsOfManagementClustersAreConfined(t *testing.T) {
	args := fluxDeployments(t)[config.FluxKustomize].Spec.Template.Spec.Containers[0].Args
	for _, want := range []string{"--default-service-account=" + config.FluxDefault, "--no-remote-bases", "--metrics-addr=0"} {
		if !slices.Contains(args, want) {
			t.Errorf("%q is missing in %q", want, args)
		}
	}
	// Kustomizations of all namespaces refer to one GitRepository.
	if slices.Contains(args, "--no-cross-namespace-refs") {
		t.Errorf("Kustomizations can't refer to the repository: %q", args)
	}
}

func TestOnlyFluxAndTheManagerReachArtifacts(t *testing.T) {
	artifacts := int32(0)
	for _, p := range fluxDeployments(t)[config.FluxSource].Spec.Template.Spec.Containers[0].Ports {
		if p.Name == "http" {
			artifacts = p.ContainerPort
		}
	}
	for _, m := range config.FluxManager(config.FluxImages{}) {
		policy := decode[networkingv1.NetworkPolicy](t, m)
		if policy.Kind != "NetworkPolicy" {
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			if open := rule.Ports[0].Port.IntVal == artifacts; len(rule.Ports) != 1 || open != isFluxOrManager(rule.From) {
				t.Errorf("port %v is open to %v", rule.Ports, rule.From)
			}
		}
		return
	}
	t.Error("no network policy")
}

// isFluxOrManager reports whether peers are the Pods of the policy's namespace and of the manager.
func isFluxOrManager(peers []networkingv1.NetworkPolicyPeer) bool {
	if len(peers) != 2 || peers[0].NamespaceSelector != nil || peers[0].IPBlock != nil || peers[1].NamespaceSelector == nil || peers[1].PodSelector == nil {
		return false
	}
	namespace, pod := peers[1].NamespaceSelector.MatchLabels, peers[1].PodSelector.MatchLabels
	return namespace[corev1.LabelMetadataName] == config.Namespace && pod["app.kubernetes.io/name"] == config.ServiceAccount
}
