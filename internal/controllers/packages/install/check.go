package install

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
)

// verdicts caches the verification of bundles by edition, which never changes.
type verdicts struct {
	mu    sync.Mutex
	known map[edition]error
}

type edition struct {
	uid     types.UID
	version string
}

// keepVerdicts is larger than the number of bundles in use.
const keepVerdicts = 256

// of returns the reason why a bundle can't be used, nil if it can.
func (v *verdicts) of(b *packagesv1.PackageBundle, verify func() error) error {
	key := edition{b.UID, b.ResourceVersion}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err, ok := v.known[key]; ok {
		return err
	}
	if v.known == nil || len(v.known) >= keepVerdicts {
		v.known = map[edition]error{}
	}
	err := verify()
	v.known[key] = err
	return err
}

// checkBundle verifies the bundle again: admission may have been disabled, or a key revoked.
func (c *Controller) checkBundle(_ context.Context, s *scope) error {
	s.verifyErr = c.verdicts.of(s.bundle, func() error {
		if _, err := bundle.ParseName(s.bundle.Name); err != nil {
			return err
		}
		if err := bundle.CheckVersion(s.bundle, c.Version); err != nil {
			return err
		}
		return bundle.Verify(s.bundle, c.Keys)
	})
	if s.verifyErr != nil {
		return reconcile.Stop
	}
	return nil
}

// configs caches the validation of configs by digest. It stores no values.
type configs struct {
	once  sync.Once
	known *lru.Cache // [sha256.Size]byte → finding
}

type finding struct{ err error }

// keepConfigs is larger than the number of distinct configs on a large fleet.
const keepConfigs = 4096

// validate calls ValidateConfig once per schema and config, because it compiles the schema.
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

// checkConfig validates the config against the schema of the version, which may have changed since
// admission.
func (c *Controller) checkConfig(_ context.Context, s *scope) error {
	if s.internal() {
		_, s.configErr = bundle.ParseConfig(s.pack.Spec.Config)
	} else {
		s.configErr = c.configs.validate(s.found.Version, s.pack.Spec.Config)
	}
	if s.configErr != nil {
		return reconcile.Stop
	}
	return nil
}
