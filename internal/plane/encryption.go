package plane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/atrest"
)

// Encryption is the file that tells the API server how to encrypt Secrets in etcd. The first key
// writes, every key reads:
//
//	[A]  ──rotate──▶  [B A]  ──all Secrets rewritten──▶  [B]
//
// Two keys in the file therefore mean an unfinished rotation, which can be resumed.
type Encryption struct {
	path string
	keys []apiserverv1.Key
}

func (h Home) encryptionFile() string { return h.path("encryption", "config.yaml") }

// ensureEncryption loads the keys or creates the first one. It rejects a home with data but without
// keys: a new key would make every Secret unreadable.
func (h Home) ensureEncryption(now time.Time) (*Encryption, error) {
	e, err := h.loadEncryption()
	if !errors.Is(err, fs.ErrNotExist) {
		return e, err
	}
	if h.used() {
		return nil, fmt.Errorf("encryption keys %q are missing, but the data requires them: put the file back, or restore a backup into another --home", h.encryptionFile())
	}
	e = &Encryption{path: h.encryptionFile()}
	err = e.addKey(now)
	return e, err
}

func (h Home) loadEncryption() (*Encryption, error) {
	data, err := os.ReadFile(h.encryptionFile())
	if err != nil {
		return nil, fmt.Errorf("reading encryption keys: %w", err)
	}
	var config apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict(data, &config); err != nil {
		return nil, fmt.Errorf("encryption keys %q are damaged: %w", h.encryptionFile(), err)
	}
	e := &Encryption{path: h.encryptionFile()}
	for _, r := range config.Resources {
		for _, p := range r.Providers {
			if p.Secretbox != nil {
				e.keys = append(e.keys, p.Secretbox.Keys...)
			}
		}
	}
	if len(e.keys) == 0 {
		return nil, fmt.Errorf("encryption keys %q hold no secretbox key", h.encryptionFile())
	}
	return e, nil
}

// Rotating reports whether an earlier rotation was interrupted.
func (e *Encryption) Rotating() bool { return len(e.keys) > 1 }

// KeyName returns the name of the key that writes. It is not secret.
func (e *Encryption) KeyName() string { return e.keys[0].Name }

// addKey puts a new key in front.
func (e *Encryption) addKey(now time.Time) error {
	key, err := atrest.NewKey(now)
	if err != nil {
		return err
	}
	e.keys = append([]apiserverv1.Key{key}, e.keys...)
	return e.write()
}

// dropOldKeys keeps only the key that writes.
func (e *Encryption) dropOldKeys() error {
	e.keys = e.keys[:1]
	return e.write()
}

func (e *Encryption) write() error {
	config := apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			// No identity provider: plaintext in etcd would be a fault, and reading it should fail
			// rather than pass unnoticed.
			Providers: []apiserverv1.ProviderConfiguration{{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: e.keys}}},
		}},
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("encoding encryption keys: %w", err)
	}
	return atomicfile.Write(e.path, data, 0o600)
}
