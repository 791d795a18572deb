package active

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keepSecrets bounds how many Secrets are kept in memory.
const keepSecrets = 512

// Secrets reads Secrets of the management plane, each version of one once.
type Secrets struct {
	metadata, live client.Reader
	read           *lru.Cache // edition → *corev1.Secret
}

type edition struct {
	uid     types.UID
	version string
}

// NewSecrets returns one that knows which version is the newest from metadata, which comes from watches, and asks live for what is in it.
func NewSecrets(metadata, live client.Reader) *Secrets {
	return &Secrets{metadata: metadata, live: live, read: lru.New(keepSecrets)}
}

// Get returns a Secret, which must not be changed, or nil if there is none.
func (s *Secrets) Get(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	known, err := s.known(ctx, "Secret", key)
	if known == nil || err != nil {
		return nil, err
	}
	if found, ok := s.read.Get(edition{known.UID, known.ResourceVersion}); ok {
		return found.(*corev1.Secret), nil //nolint:forcetypeassert // nothing else is put in
	}
	secret := &corev1.Secret{}
	if err := s.live.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading Secret %q: %w", key, err)
	}
	s.read.Add(edition{secret.UID, secret.ResourceVersion}, secret)
	return secret, nil
}

// Namespace returns the metadata of a namespace, or nil if there is none.
func (s *Secrets) Namespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	return s.known(ctx, "Namespace", client.ObjectKey{Name: name})
}

func (s *Secrets) known(ctx context.Context, kind string, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	o := metadataOf(kind)
	err := s.metadata.Get(ctx, key, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the metadata of %s %q: %w", kind, key, err)
	}
	return o, nil
}

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return o
}
