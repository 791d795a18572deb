package encryption

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/base/safeyaml"
	"github.com/drover-dev/drover/internal/model/spec"
)

// Dir is the directory of the configuration on control plane machines, and File its path.
const (
	Dir  = "/etc/kubernetes/enc"
	File = Dir + "/encryption-config.yaml"
)

const secrets = "secrets"

// What a spec wants for Secrets.
const (
	nothing = iota
	ownKey
	plugin
)

type wanted struct {
	kind int
	// explicit means that the spec asks for a key.
	explicit bool
	// kms is the plugin, under its name for Secrets.
	kms *apiserverv1.KMSConfiguration
}

// wantedBy returns what a spec wants for Secrets. Management clusters have a key without asking,
// unless their API servers are configured by hand.
func wantedBy(c *anywherev1.Cluster) wanted {
	for _, e := range c.Spec.EtcdEncryption {
		for _, p := range e.Providers {
			switch {
			case p.Secretbox != nil:
				return wanted{kind: ownKey, explicit: true}
			case p.KMS != nil && spec.Covers(e.Resources, secrets):
				return wanted{kind: plugin, kms: kmsForSecrets(p.KMS)}
			}
		}
	}
	if _, byHand := c.Spec.ControlPlaneConfiguration.APIServerExtraArgs[spec.EncryptionArgument]; c.IsSelfManaged() && !byHand {
		return wanted{kind: ownKey}
	}
	return wanted{}
}

// matches reports whether a provider is what a spec wants.
func (w wanted) matches(p *apiserverv1.ProviderConfiguration) bool {
	if w.kind == ownKey {
		return p.Secretbox != nil
	}
	return reflect.DeepEqual(p.KMS, w.kms)
}

// kms returns the configuration of a plugin. Kubernetes supports only version 2 of the protocol,
// which has no cache size.
func kms(k *anywherev1.KMS) *apiserverv1.KMSConfiguration {
	return &apiserverv1.KMSConfiguration{APIVersion: "v2", Name: k.Name, Endpoint: k.SocketListenAddress, Timeout: k.Timeout}
}

// secretsSuffix ends the name of a plugin for Secrets.
const secretsSuffix = "-secrets"

// kmsForSecrets returns the configuration of a plugin for Secrets. It has a name of its own: API
// servers reject a configuration that lists a name twice, and what the plugin encrypts for other
// resources is stored under the name in the spec.
func kmsForSecrets(k *anywherev1.KMS) *apiserverv1.KMSConfiguration {
	out := kms(k)
	out.Name += secretsSuffix
	return out
}

// samePlugin reports whether a provider is the plugin that a spec wants for Secrets. States of an
// older Drover, and clusters that never had a key, use the name in the spec, under which their
// Secrets are stored.
func samePlugin(now apiserverv1.ProviderConfiguration, wanted *apiserverv1.KMSConfiguration) bool {
	return now.KMS != nil && (now.KMS.Name == wanted.Name || now.KMS.Name+secretsSuffix == wanted.Name)
}

// identity stores Secrets as they are.
func identity() apiserverv1.ProviderConfiguration {
	return apiserverv1.ProviderConfiguration{Identity: &apiserverv1.IdentityConfiguration{}}
}

// Plain returns the configuration of a cluster without a key of its own, which is not secret, or ""
// if it encrypts nothing. Unencrypted objects remain readable.
func Plain(c *anywherev1.Cluster) (string, error) {
	return encode(pluginSets(c, ""))
}

// pluginSets returns the resources that plugins of the spec encrypt, except one.
func pluginSets(c *anywherev1.Cluster, except string) []apiserverv1.ResourceConfiguration {
	var out []apiserverv1.ResourceConfiguration
	for _, e := range c.Spec.EtcdEncryption {
		set := apiserverv1.ResourceConfiguration{
			Resources: slices.DeleteFunc(slices.Clone(e.Resources), func(r string) bool { return r == except }),
		}
		for _, p := range e.Providers {
			if p.KMS != nil {
				set.Providers = append(set.Providers, apiserverv1.ProviderConfiguration{KMS: kms(p.KMS)})
			}
		}
		if len(set.Resources) > 0 && len(set.Providers) > 0 {
			set.Providers = append(set.Providers, identity())
			out = append(out, set)
		}
	}
	return out
}

// sets returns what API servers encrypt in a state: Secrets first, because the first match counts.
func (s *State) sets(c *anywherev1.Cluster) []apiserverv1.ResourceConfiguration {
	return append([]apiserverv1.ResourceConfiguration{{Resources: []string{secrets}, Providers: s.Providers()}}, pluginSets(c, secrets)...)
}

func encode(sets []apiserverv1.ResourceConfiguration) (string, error) {
	if len(sets) == 0 {
		return "", nil
	}
	text, err := yaml.Marshal(apiserverv1.EncryptionConfiguration{
		TypeMeta:  metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: sets,
	})
	if err != nil {
		return "", fmt.Errorf("encoding the encryption configuration: %w", err)
	}
	return string(text), check(text)
}

// FileKey returns the key of the configuration in the Secret. Another key replaces the control
// plane machines; other content of the same key does not.
func (s *State) FileKey(c *anywherev1.Cluster) string {
	name := "config-" + strconv.Itoa(s.Revision)
	if plugins := s.plugins(c); len(plugins) > 0 {
		sum := sha256.New()
		for _, p := range plugins {
			fmt.Fprintln(sum, p.Name, p.Endpoint, ptr.Deref(p.Timeout, metav1.Duration{}).Duration)
		}
		for _, set := range pluginSets(c, secrets) {
			fmt.Fprintln(sum, set.Resources)
		}
		name += "-" + hex.EncodeToString(sum.Sum(nil)[:4])
	}
	return name + ".yaml"
}

// plugins returns the plugins that a state and a spec use, by address.
func (s *State) plugins(c *anywherev1.Cluster) []apiserverv1.KMSConfiguration {
	var out []apiserverv1.KMSConfiguration
	for _, set := range s.sets(c) {
		for _, p := range set.Providers {
			if p.KMS != nil {
				out = append(out, *p.KMS)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b apiserverv1.KMSConfiguration) int { return strings.Compare(a.Endpoint, b.Endpoint) })
	return slices.CompactFunc(out, func(a, b apiserverv1.KMSConfiguration) bool { return a.Endpoint == b.Endpoint })
}

// Sockets returns the directories of the sockets of a spec's plugins.
func Sockets(c *anywherev1.Cluster) []string {
	var out []string
	for _, set := range pluginSets(c, "") {
		for _, p := range set.Providers {
			if p.KMS != nil {
				out = append(out, socketDir(p.KMS.Endpoint))
			}
		}
	}
	return out
}

func socketDir(endpoint string) string { return path.Dir(strings.TrimPrefix(endpoint, "unix://")) }

// Reference returns the Secret and the key that a control plane's machines get their configuration
// from, or nothing.
func Reference(k *controlplanev1.KubeadmControlPlane) (secret, key string) {
	if k == nil {
		return "", ""
	}
	for _, f := range k.Spec.KubeadmConfigSpec.Files {
		if f.Path == File {
			return f.ContentFrom.Secret.Name, f.ContentFrom.Secret.Key
		}
	}
	return "", ""
}

// currentOf returns the providers of a control plane without keys: its plugin, if it has one, and
// none.
func currentOf(k *controlplanev1.KubeadmControlPlane) []apiserverv1.ProviderConfiguration {
	if k == nil {
		return []apiserverv1.ProviderConfiguration{identity()}
	}
	for _, f := range k.Spec.KubeadmConfigSpec.Files {
		var config apiserverv1.EncryptionConfiguration
		if f.Path != File || safeyaml.Unmarshal([]byte(f.Content), &config) != nil {
			continue
		}
		for _, set := range config.Resources {
			if spec.Covers(set.Resources, secrets) && len(set.Providers) > 0 {
				return set.Providers
			}
		}
	}
	return []apiserverv1.ProviderConfiguration{identity()}
}
