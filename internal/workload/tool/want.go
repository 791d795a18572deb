package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
	"github.com/drover-dev/drover/internal/model/addons/sources"
	"github.com/drover-dev/drover/internal/model/addons/template"
	"github.com/drover-dev/drover/internal/registry/artifact"
)

// InputError reports that something a HelmReleaseProxy refers to can't be used.
type InputError struct {
	// Reason is the reason of the condition that reports it.
	Reason string
	Err    error
}

func (e *InputError) Error() string { return e.Err.Error() }

func (e *InputError) Unwrap() error { return e.Err }

// Missing reports whether an object or a key doesn't exist, so that a watch notices when it does.
func (e *InputError) Missing() bool {
	missing := &sources.MissingError{}
	return errors.As(e.Err, &missing) || apierrors.IsNotFound(e.Err)
}

// Input reads what the HelmReleaseProxies of a management cluster refer to. All errors are
// InputErrors.
type Input struct {
	Sources *sources.Reader
	// Access limits what a release may refer to. Commands, which read with the privileges of their
	// caller, have none.
	Access Access
	// OfPackage reports that a Package wrote the release, with the credentials of its mirror.
	OfPackage bool
}

// Want returns what a HelmReleaseProxy asks for, with its values and credentials. The caller
// resolves the version.
func (i Input) Want(ctx context.Context, r *addonsv1.HelmReleaseProxy) (Want, error) {
	want, err := i.WithoutValues(ctx, r)
	if err != nil {
		return want, err
	}
	documents, err := i.Documents(ctx, r)
	if err != nil {
		return want, err
	}
	want.Values, err = Merge(documents)
	return want, err
}

// WithoutValues is Want without the values. It shares options with the HelmReleaseProxy.
func (i Input) WithoutValues(ctx context.Context, r *addonsv1.HelmReleaseProxy) (Want, error) {
	want := Want{ID: IDOf(r), Options: r.Spec.Options, Health: r.Spec.Health}
	if r.Spec.Drift != nil {
		want.Ignore = r.Spec.Drift.Ignore
	}
	var err error
	want.Package, err = i.reference(ctx, r)
	return want, err
}

// IDOf returns the ID of the release that a HelmReleaseProxy stands for.
func IDOf(r *addonsv1.HelmReleaseProxy) ID {
	return ID{Namespace: cmp.Or(r.Spec.ReleaseNamespace, corev1.NamespaceDefault), Name: r.Spec.ReleaseName}
}

// Documents returns the YAML documents that the values are merged from: those of valuesFrom in
// order, then the release's own.
func (i Input) Documents(ctx context.Context, r *addonsv1.HelmReleaseProxy) ([][]byte, error) {
	var documents [][]byte
	for _, from := range r.Spec.ValuesFrom {
		object := client.ObjectKey{Namespace: r.Namespace, Name: from.Name}
		text, err := i.value(ctx, r, from.Kind, object, cmp.Or(from.Key, "values.yaml"))
		if missing := new(sources.MissingError); errors.As(err, &missing) && from.Optional {
			continue
		}
		if err != nil {
			return nil, &InputError{addonsv1.ValueParsingFailedReason, err}
		}
		documents = append(documents, text)
	}
	return append(documents, []byte(r.Spec.Values)), nil
}

// Merge merges documents into values. Later documents take precedence.
func Merge(documents [][]byte) (map[string]any, error) {
	merged, err := template.Merge(documents...)
	if err != nil {
		return nil, &InputError{addonsv1.ValueParsingFailedReason, err}
	}
	return merged, nil
}

// reference returns where the package is and how to access it.
func (i Input) reference(ctx context.Context, r *addonsv1.HelmReleaseProxy) (artifact.Ref, error) {
	ref := artifact.Ref{URL: r.Spec.RepoURL, Name: r.Spec.ChartName, Version: r.Spec.Version}
	if c := r.Spec.Credentials; c != nil {
		if err := i.credentials(ctx, r, &ref.Access); err != nil {
			return ref, &InputError{addonsv1.GetCredentialsFailedReason, err}
		}
	}
	if t := r.Spec.TLSConfig; t != nil {
		ref.Access.SkipTLSVerify = t.InsecureSkipTLSVerify
		if t.CASecretRef != nil && t.CASecretRef.Name != "" {
			ca, err := i.value(ctx, r, "Secret", secretKey(r, *t.CASecretRef), addonsv1.CAKey)
			if err != nil {
				return ref, &InputError{addonsv1.GetCACertificateFailedReason, err}
			}
			ref.Access.CA = ca
		}
	}
	if v := r.Spec.Verify; v != nil {
		keys, err := i.get(ctx, r, "Secret", client.ObjectKey{Namespace: r.Namespace, Name: v.SecretRef.Name})
		if err != nil {
			return ref, &InputError{addonsv1.GetCredentialsFailedReason, fmt.Errorf("reading verification keys: %w", err)}
		}
		ref.Verify = &artifact.Verification{Provider: v.Provider, Keys: keys.Data}
	}
	return ref, nil
}

func (i Input) credentials(ctx context.Context, r *addonsv1.HelmReleaseProxy, access *artifact.Access) error {
	c := r.Spec.Credentials
	key := secretKey(r, c.Secret)
	found, err := i.get(ctx, r, "Secret", key)
	if apierrors.IsNotFound(err) {
		return &sources.MissingError{Kind: "Secret", Object: key}
	}
	if err != nil {
		return fmt.Errorf("reading Secret %q: %w", key, err)
	}
	if found.Type == corev1.SecretTypeBasicAuth {
		access.Username = string(found.Data[corev1.BasicAuthUsernameKey])
		access.Password = string(found.Data[corev1.BasicAuthPasswordKey])
		return nil
	}
	access.DockerConfig, err = i.value(ctx, r, "Secret", key, cmp.Or(c.Key, addonsv1.DefaultCredentialsKey))
	return err
}

func secretKey(r *addonsv1.HelmReleaseProxy, ref corev1.SecretReference) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, r.Namespace), Name: ref.Name}
}
