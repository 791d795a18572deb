package gitops

import (
	"context"
	"errors"

	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
)

// Installation is Flux on a management cluster. An embedded plane runs it as processes instead, for
// which `drover up` is responsible.
type Installation struct {
	REST *rest.Config
	// Metal is the home of machines on this host, on which images are preloaded.
	Metal metal.Home
	// Progress, if not nil, is called whenever the current activity changes.
	Progress func(doing string)
}

func (i Installation) report(doing string) {
	if i.Progress != nil {
		i.Progress(doing)
	}
}

// Install installs Flux on a management cluster, and restarts the manager with GitOps, unless that
// was done before. It reports whether the management plane is a management cluster. A Flux of
// somebody else is used as it is.
func (i Installation) Install(ctx context.Context) (bool, error) {
	image, err := bootstrap.ManagerImage(ctx, i.REST)
	if err != nil || image == "" {
		return false, err
	}
	images, err := i.images(ctx, image)
	if err != nil {
		return true, err
	}
	i.report("Installing Flux")
	if err := bootstrap.InstallFlux(ctx, i.REST, images.References); err != nil {
		return true, err
	}
	if err := bootstrap.EnableGitOps(ctx, i.REST); err != nil {
		return true, err
	}
	waiting := func(what string) { i.report("Waiting for Flux and the manager: " + what) }
	if err := bootstrap.FluxReady(ctx, i.REST, waiting); err != nil {
		return true, err
	}
	return true, bootstrap.Ready(ctx, i.REST, waiting)
}

// images returns the images of Flux, after preloading them on the machines of this host if the
// manager's image was.
func (i Installation) images(ctx context.Context, manager string) (*bootstrap.FluxImages, error) {
	if !bootstrap.IsPreloaded(manager) {
		return bootstrap.UpstreamFlux(), nil
	}
	images, err := bootstrap.PreloadedFlux()
	if err != nil {
		return nil, err
	}
	i.report("Preloading Flux's images on the machines of this host")
	if err := images.Deliver(ctx, i.Metal); err != nil {
		return nil, err
	}
	return images, nil
}

// Remove restarts the manager of a management cluster without GitOps, and deletes Flux unless
// somebody else installed it.
func (i Installation) Remove(ctx context.Context) error {
	image, err := bootstrap.ManagerImage(ctx, i.REST)
	if err != nil || image == "" {
		return err
	}
	if err := bootstrap.DisableGitOps(ctx, i.REST); err != nil {
		return err
	}
	err = bootstrap.UninstallFlux(ctx, i.REST)
	var foreign *install.ForeignError
	if err != nil && !errors.As(err, &foreign) {
		return err
	}
	return bootstrap.Ready(ctx, i.REST, func(what string) { i.report("Waiting for the manager: " + what) })
}
