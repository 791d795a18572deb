package config_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
