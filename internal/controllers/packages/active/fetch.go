package active

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/registry/bundle/source"
)

// answer is the result of a request to a cluster or a registry.
type answer struct {
	knowledge

	// fetched is set if the answer is about the active bundle.
	fetched bool
}

// startVersionQuery queries the version of the cluster.
func (v *visit) startVersionQuery(f facts) {
	through := f.connected
	v.start(v.versionQueries, f.cluster, func(context.Context) (any, error) {
		out := &answer{knowledge: knowledge{through: through}}
		info, err := through.Kubernetes().Discovery().ServerVersion()
		out.queriedAt, out.versionErr = v.Clock.Now(), err
		if err == nil {
			out.version = minor(info)
			if known, err := through.Version(); err == nil && minor(known) != out.version {
				through.Reset() // other users of the connection cache the version
			}
		}
		return out, nil
	})
}

// startBundleCheck downloads a bundle and creates its PackageBundle: the named one, or the newest
// for the version of the cluster.
func (v *visit) startBundleCheck(f facts, place, named string) {
	tag := named
	if named == "" {
		tag, _ = bundle.LatestTag(f.version) // a place implies a valid version
	}
	spec := f.spec
	wanted := source.Wanted{
		Registry: spec.Registry(), Repository: spec.Repository(), Tag: tag, Access: f.credentials.access, MaxAge: f.interval(),
	}
	host, _ := v.Source.Host(spec.Registry())
	version, access := f.version, f.access
	v.start(v.bundleChecks, client.ObjectKey{Namespace: "registry", Name: host}, func(ctx context.Context) (any, error) {
		found, created, err := v.download(ctx, wanted, named, version)
		l := check{place: place, access: access, at: v.Clock.Now(), err: err}
		refused := (*refusedError)(nil)
		l.refused = errors.As(err, &refused)
		if found != nil {
			l.at, l.name = found.At, found.Bundle.Name
		}
		count(err, created)
		out := &answer{fetched: named != ""}
		if out.fetched {
			out.activeCheck = l
		} else {
			out.latestCheck = l
		}
		return out, nil
	})
}

// refusedError is returned for a bundle that was found but can't be used.
type refusedError struct{ err error }

func (r *refusedError) Error() string { return r.err.Error() }
func (r *refusedError) Unwrap() error { return r.err }

// download downloads a bundle and creates its PackageBundle, unless it exists. It rejects bundles
// without a valid signature.
func (c *Controller) download(ctx context.Context, w source.Wanted, named, version string) (found *source.Found, created bool, err error) {
	if found, err = c.Source.Get(ctx, w); err != nil {
		return nil, false, err
	}
	b := found.Bundle.DeepCopy()
	if err := c.admit(b, w.Tag, named, version); err != nil {
		return nil, false, &refusedError{fmt.Errorf("bundle %q at %q: %w", b.Name, found.From, err)}
	}
	err = c.Client.Get(ctx, client.ObjectKeyFromObject(b), &packagesv1.PackageBundle{})
	if !apierrors.IsNotFound(err) {
		return found, false, err
	}
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	b.Annotations[packagesv1.DownloadedAnnotation] = found.From
	b.Status = packagesv1.PackageBundleStatus{}
	err = c.Client.Create(ctx, b)
	if apierrors.IsAlreadyExists(err) {
		return found, false, nil
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return nil, false, &refusedError{fmt.Errorf("creating PackageBundle %q: %w", b.Name, err)}
	}
	if err != nil {
		return nil, false, fmt.Errorf("creating PackageBundle %q: %w", b.Name, err)
	}
	return found, true, nil
}

// admit returns the reason to reject a bundle that was found at a tag.
func (c *Controller) admit(b *packagesv1.PackageBundle, tag, named, version string) error {
	name, err := bundle.ParseName(b.Name)
	switch {
	case err != nil:
		return err
	case named != "" && b.Name != named:
		return fmt.Errorf("tag %q refers to a bundle with another name", tag)
	case named == "" && name.Kubernetes() != version:
		return fmt.Errorf("tag %q refers to a bundle for Kubernetes %s", tag, name.Kubernetes())
	}
	if b.Namespace == "" {
		b.Namespace = packagesv1.Namespace
	}
	if b.Namespace != packagesv1.Namespace {
		return fmt.Errorf("bundle is for namespace %q, not %q", b.Namespace, packagesv1.Namespace)
	}
	return bundle.Verify(b, c.Keys)
}
