package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/config"
)

// configurations merges the webhooks of all providers into one object of each kind.
type configurations struct {
	mutating   admissionv1.MutatingWebhookConfiguration
	validating admissionv1.ValidatingWebhookConfiguration
}

func generateWebhooks(root, out string) error {
	all := newConfigurations()
	for _, p := range providers {
		if err := all.read(filepath.Join(root, p.dir, "webhook/manifests.yaml")); err != nil {
			return err
		}
	}
	for _, api := range ownAPIs {
		all.mutating.Webhooks = append(all.mutating.Webhooks, api.mutating()...)
		all.validating.Webhooks = append(all.validating.Webhooks, api.validating()...)
	}
	if err := writeObject(filepath.Join(out, "mutating.yaml"), fromModule+" and "+fromTypes, &all.mutating); err != nil {
		return err
	}
	return writeObject(filepath.Join(out, "validating.yaml"), fromModule+" and "+fromTypes, &all.validating)
}

func newConfigurations() *configurations {
	c := &configurations{}
	c.mutating.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}
	c.mutating.Name = config.MutatingWebhooks
	c.mutating.Labels = webhookLabels()
	c.validating.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}
	c.validating.Name = config.ValidatingWebhooks
	c.validating.Labels = webhookLabels()
	return c
}

func webhookLabels() map[string]string {
	return map[string]string{config.LabelPartOf: config.PartOf, config.LabelInjectCA: "true"}
}

func (c *configurations) read(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	docs := utilyaml.NewYAMLReader(newReader(data))
	for {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("splitting %q: %w", file, err)
		}
		if err := c.add(doc); err != nil {
			return fmt.Errorf("decoding %q: %w", file, err)
		}
	}
}

func (c *configurations) add(doc []byte) error {
	if len(bytes.TrimSpace(doc)) == 0 {
		return nil
	}
	if bytes.Contains(doc, []byte("kind: MutatingWebhookConfiguration")) {
		in := admissionv1.MutatingWebhookConfiguration{}
		if err := yaml.UnmarshalStrict(doc, &in); err != nil {
			return err
		}
		for _, w := range in.Webhooks {
			retarget(&w.ClientConfig)
			c.mutating.Webhooks = append(c.mutating.Webhooks, w)
		}
		return nil
	}
	in := admissionv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(doc, &in); err != nil {
		return err
	}
	for _, w := range in.Webhooks {
		retarget(&w.ClientConfig)
		c.validating.Webhooks = append(c.validating.Webhooks, w)
	}
	return nil
}

func retarget(c *admissionv1.WebhookClientConfig) {
	c.Service.Namespace = config.Namespace
	c.Service.Name = config.WebhookService
}
