package inventory

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/metal/driver"
)

// keySize is that of AES-256.
const keySize = 32

// Sealer encrypts the secrets of servers. What it has sealed for one server can't be opened for
// another.
type Sealer struct{ aead cipher.AEAD }

// OpenSealer returns the sealer with the key in a file, which it creates if it doesn't exist.
func OpenSealer(file string) (*Sealer, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, keySize)
		_, _ = rand.Read(key) // Never fails: the runtime ends the program instead.
		err = atomicfile.Write(file, key, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of the inventory: %w", err)
	}
	if len(key) != keySize {
		return nil, fmt.Errorf("the key of the inventory in %q is damaged: restore it from a backup", file)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &Sealer{aead: aead}, err
}

// Seal encrypts the secrets of a server. Without any, it returns nil.
func (s *Sealer) Seal(id string, secrets driver.Secrets) ([]byte, error) {
	if secrets == (driver.Secrets{}) {
		return nil, nil
	}
	plain, err := json.Marshal(secrets) //nolint:gosec // It is encrypted below.
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, s.aead.NonceSize())
	_, _ = rand.Read(nonce) // Never fails: the runtime ends the program instead.
	return s.aead.Seal(nonce, nonce, plain, []byte(id)), nil
}

// Open decrypts the secrets of a server.
func (s *Sealer) Open(id string, sealed []byte) (driver.Secrets, error) {
	var secrets driver.Secrets
	if len(sealed) == 0 {
		return secrets, nil
	}
	n := s.aead.NonceSize()
	if len(sealed) < n {
		return secrets, errors.New("the secrets of the server are damaged: set them again with `drover server edit`")
	}
	plain, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(id))
	if err != nil {
		return secrets, errors.New("the secrets of the server can't be decrypted with the key of this home: set them again with `drover server edit`")
	}
	err = json.Unmarshal(plain, &secrets)
	return secrets, err
}
