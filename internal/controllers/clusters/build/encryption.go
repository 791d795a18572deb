package build

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/drover-dev/drover/internal/controllers/clusters/encryption"
	"github.com/drover-dev/drover/internal/model/spec"
)

// encryption makes API servers encrypt stored objects: with keys from a Secret, or with a plugin
// that runs on each control plane machine.
func (b *builder) encryption(m *machines) error {
	var sockets []string
	if from := b.Encryption; from != nil {
		m.secretFile(encryption.File, from.Secret, from.Key)
		sockets = from.Sockets
	} else {
		text, err := encryption.Plain(b.cluster)
		if err != nil || text == "" {
			return err
		}
		m.file(encryption.File, text)
		sockets = encryption.Sockets(b.cluster)
	}
	m.mount("encryption-config", encryption.Dir, corev1.HostPathDirectoryOrCreate)
	for i, dir := range unique(sockets) {
		m.mount(fmt.Sprintf("encryption-plugin-%d", i), dir, corev1.HostPathDirectoryOrCreate)
	}
	m.apiServer([2]string{spec.EncryptionArgument, encryption.File})
	return nil
}

// secretFile adds a file that only root can read, with the content of a Secret.
func (m *machines) secretFile(path, secret, key string) {
	m.config.Files = append(m.config.Files, bootstrapv1.File{
		Path: path, Owner: "root:root", Permissions: "0600",
		ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: secret, Key: key}},
	})
}
