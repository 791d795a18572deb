package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/config"
)

// ownAPI is one of our API groups.
type ownAPI struct {
	dir       string // below our module's root
	group     string
	version   string
	label     string            // value of cluster.x-k8s.io/provider
	contracts map[string]string // contract version to API version
	validated []string          // resources with a validating webhook
	// named sets the names of webhooks that replace existing configurations instead of the names
	// derived from kind and group.
	named bool
	// defaults adds defaulting webhooks for the validated resources, or only for those in mutated.
	defaults bool
	mutated  []string
	// deleted are the resources whose deletion is validated.
	deleted []string
	// changes restricts webhooks to updates that change the spec, and defaulted, by resource, to
	// objects that need defaults. The manager writes such objects often, and each webhook call is a
	// request.
	changes   bool
	defaulted map[string]string
}

var ownAPIs = []ownAPI{{
	dir:     "api/infrastructure/v1beta1",
	group:   "infrastructure.cluster.x-k8s.io",
	version: "v1beta1",
	label:   "infrastructure-packet",
	// One version implements both contracts.
	contracts: map[string]string{"v1beta1": "v1beta1", "v1beta2": "v1beta1"},
	validated: []string{"packetclusters", "packetclustertemplates", "packetmachines", "packetmachinetemplates"},
}, {
	dir:     "api/bootstrap/v1beta1",
	group:   "bootstrap.cluster.x-k8s.io",
	version: "v1beta1",
	label:   "bootstrap-etcdadm-bootstrap",
}, {
	dir:     "api/etcdcluster/v1beta1",
	group:   "etcdcluster.cluster.x-k8s.io",
	version: "v1beta1",
	label:   "etcdadm-controller",
}, {
	dir:       "api/addons/v1alpha1",
	group:     "addons.cluster.x-k8s.io",
	version:   "v1alpha1",
	label:     "helm",
	validated: []string{"helmchartproxies", "helmreleaseproxies"},
	named:     true,
	defaults:  true,
	changes:   true,
	defaulted: map[string]string{
		"helmreleaseproxies": "!has(object.spec) || !has(object.spec.namespace) || object.spec.namespace == ''",
	},
}, {
	dir:       "api/packages/v1alpha1",
	group:     "packages.eks.amazonaws.com",
	version:   "v1alpha1",
	label:     "packages",
	validated: []string{"packages", "packagebundles", "packagebundlecontrollers"},
	named:     true,
}, {
	dir:     "api/anywhere/v1alpha1",
	group:   "anywhere.eks.amazonaws.com",
	version: "v1alpha1",
	label:   "clusters",
	validated: []string{
		"clusters", "dockerdatacenterconfigs", "packetdatacenterconfigs", "packetmachineconfigs", "fluxconfigs", "gitopsconfigs", "oidcconfigs",
	},
	defaults: true,
	mutated:  []string{"clusters"},
	// Deleting and creating a config again changes it, and Flux must not delete one that is in use.
	deleted: []string{"clusters", "dockerdatacenterconfigs", "packetdatacenterconfigs", "packetmachineconfigs", "fluxconfigs", "gitopsconfigs", "oidcconfigs"},
}, {
	dir:       "api/drover/v1alpha1",
	group:     "drover.dev",
	version:   "v1alpha1",
	label:     "drover",
	validated: []string{"gitchanges", "etcdsnapshotschedules"},
	defaults:  true,
	mutated:   []string{"gitchanges"},
	changes:   true,
}}

// generateOwnCRDs generates CRDs from our types and returns the names of the written files.
func generateOwnCRDs(out string) ([]string, error) {
	root, err := goCommand("list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	var written []string
	for _, api := range ownAPIs {
		names, err := api.generate(root, out)
		if err != nil {
			return nil, err
		}
		written = append(written, names...)
	}
	return written, nil
}

func (a ownAPI) generate(root, out string) ([]string, error) {
	dir, err := os.MkdirTemp("", "crds-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	_, err = goCommand("tool", "-modfile="+filepath.Join(root, "hack/tools/go.mod"), "controller-gen",
		"crd:crdVersions=v1", "paths="+filepath.Join(root, a.dir), "output:crd:dir="+dir)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var written []string
	for _, file := range files {
		name, err := convertCRD(file, out, fromTypes, a.adaptCRD)
		if err != nil {
			return nil, err
		}
		written = append(written, name)
	}
	return written, nil
}

// adaptCRD adds labels to those of the types.
func (a ownAPI) adaptCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	labels := map[string]string{
		"cluster.x-k8s.io/provider":   a.label,
		"clusterctl.cluster.x-k8s.io": "",
		config.LabelPartOf:            config.PartOf,
	}
	maps.Copy(labels, crd.Labels)
	for contract, version := range a.contracts {
		labels["cluster.x-k8s.io/"+contract] = version
	}
	crd.Labels = labels
}

// validating returns the validating webhooks of the group, at the paths where controller-runtime
// serves them.
func (a ownAPI) validating() []admissionv1.ValidatingWebhook {
	var hooks []admissionv1.ValidatingWebhook
	for _, resource := range a.validated {
		name := "validation." + singular(resource) + "." + a.group
		if a.named {
			name = "v" + singular(resource) + ".kb.io"
		}
		hooks = append(hooks, admissionv1.ValidatingWebhook{
			Name: name, ClientConfig: a.service("validate", resource), Rules: a.validatingRules(resource),
			FailurePolicy: ptr.To(admissionv1.Fail), MatchPolicy: ptr.To(admissionv1.Equivalent),
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			MatchConditions: a.changed(),
		})
	}
	return hooks
}

// unlessTheSame is true if the spec has changed. An expression that fails rejects the object.
const unlessTheSame = "request.operation != 'UPDATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"

// changed is true if there is something to validate.
func (a ownAPI) changed() []admissionv1.MatchCondition {
	if !a.changes {
		return nil
	}
	return []admissionv1.MatchCondition{{Name: "spec-changed", Expression: unlessTheSame}}
}

// incomplete is true if defaults are missing.
func (a ownAPI) incomplete(resource string) []admissionv1.MatchCondition {
	if a.defaulted[resource] == "" {
		return a.changed()
	}
	return append(a.changed(), admissionv1.MatchCondition{Name: "incomplete", Expression: a.defaulted[resource]})
}

// mutating returns the defaulting webhooks of the group.
func (a ownAPI) mutating() []admissionv1.MutatingWebhook {
	if !a.defaults {
		return nil
	}
	resources := a.mutated
	if len(resources) == 0 {
		resources = a.validated
	}
	var hooks []admissionv1.MutatingWebhook
	for _, resource := range resources {
		name := "default." + singular(resource) + "." + a.group
		if a.named {
			name = singular(resource) + ".kb.io"
		}
		hooks = append(hooks, admissionv1.MutatingWebhook{
			Name: name, ClientConfig: a.service("mutate", resource), Rules: a.rules(resource),
			FailurePolicy: ptr.To(admissionv1.Fail), MatchPolicy: ptr.To(admissionv1.Equivalent),
			SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			MatchConditions: a.incomplete(resource),
		})
	}
	return hooks
}

func (a ownAPI) service(verb, resource string) admissionv1.WebhookClientConfig {
	path := fmt.Sprintf("/%s-%s-%s-%s", verb, strings.ReplaceAll(a.group, ".", "-"), a.version, singular(resource))
	return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
		Namespace: config.Namespace, Name: config.WebhookService, Path: &path,
	}}
}

func (a ownAPI) validatingRules(resource string) []admissionv1.RuleWithOperations {
	rules := a.rules(resource)
	if slices.Contains(a.deleted, resource) {
		rules[0].Operations = append(rules[0].Operations, admissionv1.Delete)
	}
	return rules
}

func (a ownAPI) rules(resource string) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{a.group}, APIVersions: []string{a.version}, Resources: []string{resource}},
	}}
}

// singular returns the kind in lower case.
func singular(resource string) string {
	if stem, ok := strings.CutSuffix(resource, "ies"); ok {
		return stem + "y"
	}
	return strings.TrimSuffix(resource, "s")
}

func goCommand(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running go %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
