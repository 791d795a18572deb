package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
)

// ManagerImage returns the image of the manager if it runs in the cluster itself, which is not so
// on an embedded plane.
func ManagerImage(ctx context.Context, on *rest.Config) (string, error) {
	d, err := managerOf(ctx, on)
	if err != nil || d == nil {
		return "", err
	}
	return d.Spec.Template.Spec.Containers[0].Image, nil
}

// IsPreloaded reports whether an image exists only on machines where it was preloaded.
func IsPreloaded(image string) bool { return strings.HasPrefix(image, registry) }

// RunsGitOps reports whether the manager of a cluster manages clusters through Git.
func RunsGitOps(ctx context.Context, on *rest.Config) (bool, error) {
	d, err := managerOf(ctx, on)
	return d != nil && hasGitOps(d), err
}

// managerOf returns the Deployment of the manager, or nil.
func managerOf(ctx context.Context, on *rest.Config) (*appsv1.Deployment, error) {
	c, err := newClient(on)
	if err != nil {
		return nil, err
	}
	d := &appsv1.Deployment{}
	err = c.Get(ctx, managerKey, d)
	if apierrors.IsNotFound(err) {
		return nil, nil // A missing Deployment is no failure.
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Deployment of the manager: %w", err)
	}
	return d, nil
}

// EnableGitOps makes the manager of a cluster manage clusters through Git. Flux must be installed.
func EnableGitOps(ctx context.Context, on *rest.Config) error {
	return changeManager(ctx, on, withGitOps)
}

// DisableGitOps is the opposite of EnableGitOps.
func DisableGitOps(ctx context.Context, on *rest.Config) error {
	return changeManager(ctx, on, withoutGitOps)
}

// changeManager changes the arguments of the manager.
func changeManager(ctx context.Context, on *rest.Config, change func([]string) []string) error {
	c, err := newClient(on)
	if err != nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, managerKey, d); err != nil {
			return err
		}
		container := &d.Spec.Template.Spec.Containers[0]
		args := change(slices.Clone(container.Args))
		if slices.Equal(args, container.Args) {
			return nil
		}
		container.Args = args
		delete(d.Annotations, install.HashAnnotation) // The next installation writes its own arguments.
		return c.Update(ctx, d, client.FieldOwner(fieldManager))
	})
	if err != nil {
		return fmt.Errorf("changing the Deployment of the manager: %w", err)
	}
	return nil
}

// withoutGitOps removes the flags of GitOps.
func withoutGitOps(args []string) []string {
	return slices.DeleteFunc(args, func(arg string) bool { return arg == gitOpsFlag || strings.HasPrefix(arg, gitWebhookFlag+"=") })
}

// UninstallFlux deletes the Flux controllers that Drover installed, and their roles. Their kinds
// and objects of others stay.
func UninstallFlux(ctx context.Context, on *rest.Config) error {
	return install.DeleteFlux(ctx, on, config.FluxManager(config.FluxImages{}))
}
