package active

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/contents"
)

// Secrets reads Secrets of the management plane, each version once.
type Secrets struct {
	metadata client.Reader
	store    *contents.Store
}

// NewSecrets returns Secrets that get the current version from metadata, which is watched, and the
// content from live.
func NewSecrets(metadata, live client.Reader) *Secrets {
	return &Secrets{metadata, contents.New(metadata, live)}
}

// Get returns a Secret, which must not be changed, or nil if there is none.
func (s *Secrets) Get(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret, err := s.store.Secret(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Secret %q: %w", key, err)
	}
	return secret, nil
}

// Namespace returns the metadata of a namespace, or nil if there is none.
func (s *Secrets) Namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	o := metadataOf("Namespace")
	err := s.metadata.Get(ctx, client.ObjectKey{Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading namespace %q: %w", name, err)
	}
	return o, nil
}

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return o
}
