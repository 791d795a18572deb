package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
)

// providerInventory is the kind of clusterctl's list of installed providers; clusterctl requires it
// before it moves objects, and it has no webhooks.
const providerInventory = "cmd/clusterctl/config/manifest/clusterctl-api.yaml"

func generateCRDs(root, out string) error {
	written := map[string]bool{}
	for _, p := range providers {
		files, err := filepath.Glob(filepath.Join(root, p.dir, "crd/bases/*.yaml"))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("no CRDs of %q in %q", p.label, root)
		}
		for _, file := range files {
			name, err := convertCRD(file, out, fromModule, p.adaptCRD)
			if err != nil {
				return err
			}
			written[name] = true
		}
	}
	name, err := convertCRD(filepath.Join(root, providerInventory), out, fromModule, adaptInventory)
	if err != nil {
		return err
	}
	written[name] = true
	own, err := generateOwnCRDs(out)
	if err != nil {
		return err
	}
	for _, name := range own {
		written[name] = true
	}
	return pruneDir(out, written)
}

// convertCRD adapts one CRD and returns the name of the written file.
func convertCRD(file, out, source string, adapt func(*apiextensionsv1.CustomResourceDefinition)) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return "", fmt.Errorf("decoding %q: %w", file, err)
	}
	adapt(crd)
	name := filepath.Join(out, crd.Name+".yaml")
	return name, writeObject(name, source, crd)
}

func (p provider) adaptCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Labels = map[string]string{
		"cluster.x-k8s.io/provider":   p.label,
		"clusterctl.cluster.x-k8s.io": "",
		config.LabelPartOf:            config.PartOf,
		config.LabelInjectCA:          "true",
	}
	if p.contracts {
		crd.Labels["cluster.x-k8s.io/v1beta1"] = "v1beta1"
		crd.Labels["cluster.x-k8s.io/v1beta2"] = "v1beta2"
	}
	crd.Spec.Conversion = conversion()
}

func adaptInventory(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Labels = map[string]string{"clusterctl.cluster.x-k8s.io": "", config.LabelPartOf: config.PartOf}
}

func conversion() *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{
					Namespace: config.Namespace,
					Name:      config.WebhookService,
					Path:      ptr.To("/convert"),
				},
			},
		},
	}
}
