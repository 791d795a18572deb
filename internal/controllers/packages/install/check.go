package install

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// verdicts remembers which bundles are good, by what can't change: a version of an object.
type verdicts struct {
	mu    sync.Mutex
	known map[edition]error
}

type edition struct {
	uid     types.UID
	version string
}

// keepVerdicts is more than there are bundles that clusters use at a time.
const keepVerdicts = 256

// of is why a bundle can't be used, nil if it can.
func (v *verdicts) of(b *packagesv1.PackageBundle, judge func() error) error {
	key := edition{b.UID, b.ResourceVersion}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err, ok := v.known[key]; ok {
		return err
	}
	if v.known == nil || len(v.known) >= keepVerdicts {
		v.known = map[edition]error{}
	}
	err := judge()
	v.known[key] = err
	return err
}

// checkBundle looks at the signature again: admission may have been off, or a key be trusted no longer.
func (c *Controller) checkBundle(_ context.Context, s *scope) (bool, error) {
	err := c.verdicts.of(s.bundle, func() error {
		if _, err := bundle.ParseName(s.bundle.Name); err != nil {
			return err
		}
		if err := bundle.CheckVersion(s.bundle, c.Version); err != nil {
			return err
		}
		return bundle.Verify(s.bundle, c.Keys)
	})
	if err != nil {
		s.unsourced = &problem{packagesv1.BundleRefusedReason, fmt.Sprintf("PackageBundle %q: %v", s.bundle.Name, err)}
	}
	return err == nil, nil
}

// configs remembers what schemas say of configs. It holds digests and nothing of what they say.
type configs struct {
	once  sync.Once
	known *lru.Cache // [sha256.Size]byte → finding
}

type finding struct{ err error }

// keepConfigs is more than there are packages with a config of their own on a large fleet.
const keepConfigs = 4096

// validate is ValidateConfig, once for each schema and config: a schema is compiled for that.
func (c *configs) validate(v *packagesv1.SourceVersion, config string) error {
	c.once.Do(func() { c.known = lru.New(keepConfigs) })
	key := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(v.Schema), v.Schema, config))
	if known, ok := c.known.Get(key); ok {
		f, _ := known.(finding)
		return f.err
	}
	err := bundle.ValidateConfig(v, config)
	c.known.Add(key, finding{err})
	return err
}

// checkConfig holds config against the schema of the version, which may be another one than when it was admitted.
func (c *Controller) checkConfig(_ context.Context, s *scope) (bool, error) {
	check := func() error { return c.configs.validate(s.found.Version, s.pack.Spec.Config) }
	if s.internal() {
		check = func() error {
			_, err := bundle.ParseConfig(s.pack.Spec.Config)
			return err
		}
	}
	if err := check(); err != nil {
		s.unsourced = &problem{packagesv1.ConfigInvalidReason, bound(err.Error())}
		return false, nil
	}
	return true, nil
}

// maxMessage bounds what is told in a condition.
const maxMessage = 1000

func bound(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return message[:maxMessage] + "…"
}

// noSuch says that an object is not there.
func noSuch(ctx context.Context, reader client.Reader, key client.ObjectKey, into client.Object) (bool, error) {
	err := reader.Get(ctx, key, into)
	return err != nil, client.IgnoreNotFound(err)
}
