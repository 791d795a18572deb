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

// startOffer serves what ships with Drover, if there is a key for it, and returns options that make
// use of it.
func (o Options) startOffer(ctx context.Context, log logr.Logger) (with Options, end func(), err error) {
	if o.OfferKey == "" {
		return o, func() {}, nil
	}
	if _, err := os.Stat(o.OfferKey); errors.Is(err, fs.ErrNotExist) {
		log.Info("What ships with Drover is not offered: there is no key to sign it with", "key", o.OfferKey)
		return o, func() {}, nil
	}
	f, err := offer.Open(ctx, offer.Options{Address: o.OfferAddr, KeyFile: o.OfferKey, Log: slog.New(logr.ToSlogHandler(log.WithName("offer")))})
	if err != nil {
		return o, nil, err
	}
	o.RegistryURL, o.RegistryCA = "https://"+f.Host, f.CAFile
	o.PackageKeys = append(o.PackageKeys[:len(o.PackageKeys):len(o.PackageKeys)], f.PublicKeyFile)
	// Manifests that name another registry find what is here first.
	mirrors := map[string]string{"*": f.Host}
	maps.Copy(mirrors, o.PackageMirrors)
	o.PackageMirrors = mirrors
	return o, func() {
		if err := f.Close(); err != nil {
			log.Error(err, "Something is left of the registry")
		}
	}, nil
}
