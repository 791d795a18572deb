package manager

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"

	"github.com/go-logr/logr"

	"github.com/drover-dev/drover/internal/manager/offer"
)

// startOffer serves the charts and bundles that ship with Drover, if there is a signing key, and
// returns options that use them.
func (o Options) startOffer(ctx context.Context, log logr.Logger) (with Options, end func(), err error) {
	if o.OfferKey == "" {
		return o, func() {}, nil
	}
	if _, err := os.Stat(o.OfferKey); errors.Is(err, fs.ErrNotExist) {
		log.Info("Shipped packages are not offered: no signing key is configured", "key", o.OfferKey)
		return o, func() {}, nil
	}
	f, err := offer.Open(ctx, offer.Options{Address: o.OfferAddr, KeyFile: o.OfferKey, Log: slog.New(logr.ToSlogHandler(log.WithName("offer")))})
	if err != nil {
		return o, nil, err
	}
	o.RegistryURL, o.RegistryCA = "https://"+f.Host, f.CAFile
	o.PackageKeys = append(o.PackageKeys[:len(o.PackageKeys):len(o.PackageKeys)], f.PublicKeyFile)
	// References to other registries are resolved here first.
	mirrors := map[string]string{"*": f.Host}
	maps.Copy(mirrors, o.PackageMirrors)
	o.PackageMirrors = mirrors
	return o, func() {
		if err := f.Close(); err != nil {
			log.Error(err, "Failed to clean up the registry")
		}
	}, nil
}
