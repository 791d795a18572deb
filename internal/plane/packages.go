package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/drover-dev/drover/internal/base/atomicfile"
	"github.com/drover-dev/drover/internal/base/pki"
	"github.com/drover-dev/drover/internal/registry"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/shipped"
	"github.com/drover-dev/drover/internal/registry/bundle/transfer"
)

// BundleKey returns the file with the key that signs package bundles on this plane.
func (h Home) BundleKey() string { return h.keyFile("bundles") }

// BundlePublicKey returns the file with the public half of BundleKey, which the manager trusts.
func (h Home) BundlePublicKey() string { return strings.TrimSuffix(h.BundleKey(), ".key") + ".pub" }

// checkBundleKey rejects a file that is not a key, or not the key of the home: existing bundles
// would become invalid.
func (h Home) checkBundleKey(given string) error {
	if given == "" {
		return nil
	}
	key, err := publicHalf(given)
	if err == nil {
		_, err = bundle.ParseKeys(map[string][]byte{given: key})
	}
	if err != nil {
		return fmt.Errorf("--bundle-key: %w", err)
	}
	own, err := publicHalf(h.BundleKey())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("reading the key that signs bundles: %w", err)
	case !bytes.Equal(key, own):
		return fmt.Errorf("--bundle-key: home %q signs bundles with another key: choose another --home, or omit the flag", h.Dir)
	}
	return nil
}

// ensureBundleKey creates the key once, or copies the given one. It restores a missing public half.
func (h Home) ensureBundleKey(given string) error {
	if _, err := os.Stat(h.BundleKey()); errors.Is(err, fs.ErrNotExist) {
		if given == "" {
			if err := h.checkReplaceable("the key that signs bundles", err, h.BundleKey()); err != nil {
				return err
			}
		}
		key, err := newBundleKey(given)
		if err != nil {
			return err
		}
		if err := atomicfile.Write(h.BundleKey(), key, 0o600); err != nil {
			return err
		}
	}
	public, err := publicHalf(h.BundleKey())
	if err != nil {
		return fmt.Errorf("reading the key that signs bundles: %w", err)
	}
	return atomicfile.Write(h.BundlePublicKey(), public, 0o600)
}

// publicHalf returns the public half of a key in a file.
func publicHalf(file string) ([]byte, error) {
	key, err := pki.LoadKey(file)
	if err != nil {
		return nil, err
	}
	return pki.PublicPEM(key)
}

func newBundleKey(given string) ([]byte, error) {
	if given == "" {
		return pki.NewKey()
	}
	key, err := os.ReadFile(given)
	if err != nil {
		return nil, fmt.Errorf("reading the key that signs bundles: %w", err)
	}
	return key, nil
}

// offerPackages publishes the bundles that ship with Drover to the registry. A failure doesn't stop
// the plane, which works without them.
func (p *Plane) offerPackages(ctx context.Context, progress Progress) {
	stage := progress.stage("packages")
	if err := p.publishPackages(ctx); err != nil {
		p.log.Error("Failed to publish package bundles", "error", err)
		stage.skipped(err.Error())
		return
	}
	stage.ok()
}

func (p *Plane) publishPackages(ctx context.Context) error {
	key, err := pki.LoadKey(p.home.BundleKey())
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(p.home.certFile("ca"))
	if err != nil {
		return err
	}
	password, err := os.ReadFile(p.home.registryPasswordFile())
	if err != nil {
		return err
	}
	to := transfer.Options{Address: p.config.registryHost(), CA: ca, Username: registry.User, Password: strings.TrimSpace(string(password))}
	return shipped.PublishAll(ctx, to, key)
}

// registryHost returns the host of references to the registry.
func (c Config) registryHost() string { return loopback(c.RegistryPort) }
