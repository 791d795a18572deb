package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/config"
)

// ownAPI is a group of kinds that are ours.
type ownAPI struct {
	dir       string // below our module's root
	group     string
	version   string
	label     string            // value of cluster.x-k8s.io/provider
	contracts map[string]string // contract version to API version
	validated []string          // resources that have a validating webhook, with their kinds in lower case
}

var ownAPIs = []ownAPI{{
	dir:     "api/infrastructure/v1beta1",
	group:   "infrastructure.cluster.x-k8s.io",
	version: "v1beta1",
	label:   "infrastructure-packet",
	// One version fulfils both contracts.
	contracts: map[string]string{"v1beta1": "v1beta1", "v1beta2": "v1beta1"},
	validated: []string{"packetclusters", "packetclustertemplates", "packetmachines", "packetmachinetemplates"},
}}

// generateOwnCRDs derives definitions from our types and returns the names of the files that it wrote.
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

func (a ownAPI) adaptCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Labels = map[string]string{
		"cluster.x-k8s.io/provider":   a.label,
		"clusterctl.cluster.x-k8s.io": "",
		config.LabelPartOf:            config.PartOf,
	}
	for contract, version := range a.contracts {
		crd.Labels["cluster.x-k8s.io/"+contract] = version
	}
}

// webhooks returns the validating webhooks of the group, at the paths where controller-runtime serves them.
func (a ownAPI) webhooks() []admissionv1.ValidatingWebhook {
	var hooks []admissionv1.ValidatingWebhook
	for _, resource := range a.validated {
		kind := strings.TrimSuffix(resource, "s")
		path := fmt.Sprintf("/validate-%s-%s-%s", strings.ReplaceAll(a.group, ".", "-"), a.version, kind)
		hooks = append(hooks, admissionv1.ValidatingWebhook{
			Name: "validation." + kind + "." + a.group,
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: config.Namespace, Name: config.WebhookService, Path: &path,
			}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{a.group}, APIVersions: []string{a.version}, Resources: []string{resource}},
			}},
			FailurePolicy:           ptr.To(admissionv1.Fail),
			MatchPolicy:             ptr.To(admissionv1.Equivalent),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		})
	}
	return hooks
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
