package spec

import (
	"slices"
	"strings"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

// EncryptionArgument is the argument of API servers that names their encryption configuration.
const EncryptionArgument = "encryption-provider-config"

const secrets = "secrets"

// Covers reports whether resources that are to be encrypted, which may be wildcards, include one.
func Covers(resources []string, one string) bool {
	_, group, _ := strings.Cut(one, ".")
	return slices.ContainsFunc(resources, func(r string) bool { return r == one || r == "*.*" || r == "*."+group })
}

// keyKeptRule rejects changes after which API servers could not read Secrets that they encrypted
// with a key of the cluster.
func keyKeptRule(was, is *anywherev1.Cluster) Violations {
	switch {
	case usesSecretbox(was) && was.IsManaged() && len(is.Spec.EtcdEncryption) == 0:
		return violation("spec.etcdEncryption", "restore it", "encryption with a key of the cluster can't be disabled")
	case was.IsSelfManaged() && encryptsByHand(is) && !encryptsByHand(was):
		return violation(controlPlane+".apiServerExtraArgs", "remove "+EncryptionArgument+", or configure spec.etcdEncryption", "Drover sets %s", EncryptionArgument)
	}
	return nil
}

// pluginKeptRule rejects changes after which API servers could not read what a plugin encrypted.
// Only Secrets are encrypted again when their provider changes, and only if there is a new one.
func pluginKeptRule(was, is *anywherev1.Cluster) Violations {
	before, name := plugin(was)
	after, newName := plugin(is)
	for _, r := range before {
		if r != secrets && (newName != name || !Covers(after, r)) {
			return violation("spec.etcdEncryption", "restore the name of the plugin and its resources",
				"plugin %q encrypted %s, which could not be read without it", printable(name), printable(r))
		}
	}
	if Covers(before, secrets) && !Covers(after, secrets) && !usesSecretbox(is) && was.IsManaged() {
		return violation("spec.etcdEncryption", "restore it, or replace it by a secretbox provider", "plugin %q encrypted secrets, which could not be read without it", printable(name))
	}
	return nil
}

// plugin returns the resources that a plugin encrypts, and its name.
func plugin(c *anywherev1.Cluster) (resources []string, name string) {
	for _, e := range c.Spec.EtcdEncryption {
		for _, p := range e.Providers {
			if p.KMS != nil {
				return e.Resources, p.KMS.Name
			}
		}
	}
	return nil, ""
}

func encryptsByHand(c *anywherev1.Cluster) bool {
	_, ok := c.Spec.ControlPlaneConfiguration.APIServerExtraArgs[EncryptionArgument]
	return ok
}

func usesSecretbox(c *anywherev1.Cluster) bool {
	return slices.ContainsFunc(c.Spec.EtcdEncryption, func(e anywherev1.EtcdEncryption) bool {
		return slices.ContainsFunc(e.Providers, func(p anywherev1.EtcdEncryptionProvider) bool { return p.Secretbox != nil })
	})
}
