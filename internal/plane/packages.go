package plane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/drover-dev/drover/internal/atomicfile"
	"github.com/drover-dev/drover/internal/packages/shipped"
	"github.com/drover-dev/drover/internal/packages/transfer"
	"github.com/drover-dev/drover/internal/pki"
	"github.com/drover-dev/drover/internal/registry"
)

// BundleKey is what bundles of packages are signed with on this plane, and
// BundlePublicKey what its manager trusts.
func (h Home) BundleKey() string { return h.keyFile("bundles") }

// BundlePublicKey is the other half of BundleKey.
func (h Home) BundlePublicKey() string { return strings.TrimSuffix(h.BundleKey(), ".key") + ".pub" }

// ensureBundleKey makes the key once. The public half is written again if it
// is gone.
func (h Home) ensureBundleKey() error {
	if _, err := os.Stat(h.BundleKey()); errors.Is(err, fs.ErrNotExist) {
		key, err := pki.NewKey()
		if err != nil {
			return err
		}
		if err := atomicfile.Write(h.BundleKey(), key, 0o600); err != nil {
			return err
		}
	}
	key, err := pki.LoadKey(h.BundleKey())
	if err != nil {
		return fmt.Errorf("the key that signs bundles: %w", err)
	}
	public, err := pki.PublicPEM(key)
	if err != nil {
		return err
	}
	return atomicfile.Write(h.BundlePublicKey(), public, 0o600)
}

// offerPackages puts the bundles that ship with Drover into the registry. A
// plane can do without them, so that one whose registry has something else in
// their place still starts.
func (p *Plane) offerPackages(ctx context.Context, progress Progress) {
	stage := progress.stage("packages")
	if err := p.publishPackages(ctx); err != nil {
		p.log.Error("The packages that ship with Drover are not offered", "error", err)
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
	return shipped.Offer(ctx, to, key)
}

// registryHost is how references to the registry begin.
func (c Config) registryHost() string { return loopback(c.RegistryPort) }
