package bootstrap

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/kube/flux"
	"github.com/drover-dev/drover/internal/metal"
)

const (
	// upstreamFlux has upstream's images, for machines that are not on this host.
	upstreamFlux = "ghcr.io/fluxcd/"

	// gitOpsFlag and gitWebhookFlag are flags of the manager.
	gitOpsFlag     = "--gitops"
	gitWebhookFlag = "--git-webhook-addr"
	gitWebhookAddr = ":9444"
)

// FluxImages are the images of the Flux controllers.
type FluxImages struct {
	// References name the images in Deployments.
	References config.FluxImages

	// archives are preloaded. There are none if machines pull upstream's images.
	archives []*Archive
}

// PreloadedFlux describes the images of the controllers that are on this host.
func PreloadedFlux() (*FluxImages, error) {
	programs, err := flux.Find()
	if err != nil {
		return nil, err
	}
	source, err := FluxImage(flux.Source(), programs[flux.Source().Name])
	if err != nil {
		return nil, err
	}
	kustomize, err := FluxImage(flux.Kustomize(), programs[flux.Kustomize().Name])
	if err != nil {
		return nil, err
	}
	return &FluxImages{
		References: config.FluxImages{Source: source.Reference, Kustomize: kustomize.Reference},
		archives:   []*Archive{source, kustomize},
	}, nil
}

// UpstreamFlux names upstream's images of the same versions.
func UpstreamFlux() *FluxImages {
	of := func(c flux.Controller) string { return upstreamFlux + c.Name + ":" + c.Version }
	return &FluxImages{References: config.FluxImages{Source: of(flux.Source()), Kustomize: of(flux.Kustomize())}}
}

// Deliver preloads the images on every local machine of a home, as the function of that name does.
func (f *FluxImages) Deliver(ctx context.Context, h metal.Home) error {
	for _, a := range f.archives {
		if err := Deliver(ctx, h, a); err != nil {
			return err
		}
	}
	return nil
}

// InstallFlux installs or upgrades the Flux controllers on a cluster. A Flux that somebody else
// installed is used as it is, if its API has what Drover needs.
func InstallFlux(ctx context.Context, to *rest.Config, images config.FluxImages) error {
	err := install.ApplyFlux(ctx, to, install.Options{More: config.FluxManager(images)})
	var foreign *install.ForeignError
	if errors.As(err, &foreign) {
		return install.CheckForeignFlux(ctx, to)
	}
	if err != nil {
		return fmt.Errorf("installing Flux: %w", err)
	}
	return nil
}
