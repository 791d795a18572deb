package build

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

const (
	encryptionDir  = "/etc/kubernetes/enc"
	encryptionFile = encryptionDir + "/encryption-config.yaml"
)

// The encryption configuration of API servers, as far as it is used here.
type (
	encryptionConfiguration struct {
		APIVersion string               `json:"apiVersion"`
		Kind       string               `json:"kind"`
		Resources  []encryptedResources `json:"resources"`
	}
	encryptedResources struct {
		Resources []string             `json:"resources"`
		Providers []encryptionProvider `json:"providers"`
	}
	encryptionProvider struct {
		KMS      *encryptionPlugin `json:"kms,omitempty"`
		Identity *struct{}         `json:"identity,omitempty"`
	}
	encryptionPlugin struct {
		APIVersion string `json:"apiVersion"`
		Name       string `json:"name"`
		Endpoint   string `json:"endpoint"`
		Timeout    string `json:"timeout,omitempty"`
	}
)

// encryption makes API servers encrypt stored objects with a plugin that runs on each control plane
// machine. Kubernetes supports only version 2 of the protocol, which has no cache size.
func (b *builder) encryption(m *machines) error {
	if len(b.cluster.Spec.EtcdEncryption) == 0 {
		return nil
	}
	config := encryptionConfiguration{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"}
	var sockets []string
	for _, e := range b.cluster.Spec.EtcdEncryption {
		set := encryptedResources{Resources: e.Resources}
		for _, p := range e.Providers {
			if p.KMS == nil {
				continue
			}
			set.Providers = append(set.Providers, encryptionProvider{KMS: plugin(p.KMS)})
			sockets = append(sockets, path.Dir(strings.TrimPrefix(p.KMS.SocketListenAddress, "unix://")))
		}
		// Unencrypted objects remain readable.
		set.Providers = append(set.Providers, encryptionProvider{Identity: &struct{}{}})
		config.Resources = append(config.Resources, set)
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("encoding the encryption configuration: %w", err)
	}
	m.file(encryptionFile, string(text))
	m.mount("encryption-config", encryptionDir, corev1.HostPathDirectoryOrCreate)
	for i, dir := range unique(sockets) {
		m.mount(fmt.Sprintf("encryption-plugin-%d", i), dir, corev1.HostPathDirectoryOrCreate)
	}
	m.apiServer([2]string{"encryption-provider-config", encryptionFile})
	return nil
}

func plugin(k *anywherev1.KMS) *encryptionPlugin {
	out := &encryptionPlugin{APIVersion: "v2", Name: k.Name, Endpoint: k.SocketListenAddress}
	if k.Timeout != nil {
		out.Timeout = k.Timeout.Duration.String()
	}
	return out
}
