package git

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/crypto/ssh"
)

// signer returns the armored signature of a message.
type signer func(message []byte) (string, error)

// CheckSigning checks that the signing key, if there is one, can sign commits. The error doesn't
// contain the key.
func (c Credentials) CheckSigning() error {
	if len(c.SigningKey) == 0 && c.SigningPassphrase != "" {
		return errors.New("a passphrase of a signing key requires a signing key")
	}
	sign, err := newSigner(c)
	if err != nil || sign == nil {
		return err
	}
	if _, err := sign(nil); err != nil {
		return fmt.Errorf("using signing key: %w", err)
	}
	return nil
}

// newSigner returns nil if there is no key.
func newSigner(c Credentials) (signer, error) {
	switch {
	case len(c.SigningKey) == 0:
		return nil, nil // commits are not signed without a key
	case bytes.Contains(c.SigningKey, []byte("BEGIN PGP PRIVATE KEY BLOCK")):
		return newPGPSigner(c.SigningKey, c.SigningPassphrase)
	}
	key, err := parseKey(c.SigningKey, c.SigningPassphrase)
	if err != nil {
		return nil, fmt.Errorf("reading signing key: %w", err)
	}
	return func(message []byte) (string, error) { return signSSH(key, message) }, nil
}

func newPGPSigner(armored []byte, passphrase string) (signer, error) {
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(armored))
	if err != nil {
		return nil, fmt.Errorf("reading signing key: %w", err)
	}
	if len(keys) != 1 || keys[0].PrivateKey == nil {
		return nil, errors.New("reading signing key: it must contain one private key")
	}
	if passphrase != "" {
		if err := keys[0].DecryptPrivateKeys([]byte(passphrase)); err != nil {
			return nil, fmt.Errorf("decrypting signing key: %w", err)
		}
	}
	return func(message []byte) (string, error) {
		var out bytes.Buffer
		err := openpgp.ArmoredDetachSign(&out, keys[0], bytes.NewReader(message), nil)
		return out.String() + "\n", err
	}, nil
}

// The format of signatures by SSH keys, from OpenSSH's PROTOCOL.sshsig.
const (
	sshMagic     = "SSHSIG"
	sshVersion   = 1
	sshNamespace = "git"
	sshHash      = "sha512"
)

func signSSH(key ssh.Signer, message []byte) (string, error) {
	hash := sha512.Sum512(message)
	signed := append([]byte(sshMagic), ssh.Marshal(struct {
		Namespace, Reserved, HashAlgorithm string
		Hash                               []byte
	}{sshNamespace, "", sshHash, hash[:]})...)
	signature, err := signStrongly(key, signed)
	if err != nil {
		return "", err
	}
	blob := append([]byte(sshMagic), ssh.Marshal(struct {
		Version                            uint32
		PublicKey                          []byte
		Namespace, Reserved, HashAlgorithm string
		Signature                          []byte
	}{sshVersion, key.PublicKey().Marshal(), sshNamespace, "", sshHash, ssh.Marshal(signature)})...)
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: blob})), nil
}

// signStrongly avoids SHA-1, which RSA keys sign with by default and which verifiers reject.
func signStrongly(key ssh.Signer, data []byte) (*ssh.Signature, error) {
	if rsa, ok := key.(ssh.AlgorithmSigner); ok && key.PublicKey().Type() == ssh.KeyAlgoRSA {
		return rsa.SignWithAlgorithm(rand.Reader, data, ssh.KeyAlgoRSASHA512)
	}
	return key.Sign(rand.Reader, data)
}

// signCommit adds a signature to a commit.
func (s signer) signCommit(c *object.Commit) error {
	if s == nil {
		return nil
	}
	encoded := &plumbing.MemoryObject{}
	if err := c.EncodeWithoutSignature(encoded); err != nil {
		return err
	}
	r, err := encoded.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	var message bytes.Buffer
	if _, err := message.ReadFrom(r); err != nil {
		return err
	}
	c.PGPSignature, err = s(message.Bytes())
	if err != nil {
		return fmt.Errorf("signing a commit: %w", err)
	}
	return nil
}
