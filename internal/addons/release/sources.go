package release

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxSources bounds how many ConfigMaps and Secrets are kept in memory.
const maxSources = 512

// Sources reads ConfigMaps and Secrets, each version of one once.
type Sources struct {
	// Metadata knows which version is the newest, from watches.
	Metadata client.Reader
	// Live asks the API server.
	Live  client.Reader
	cache *lru.Cache
}

// NewSources returns one that remembers nothing yet.
func NewSources(metadata, live client.Reader) *Sources {
	return &Sources{Metadata: metadata, Live: live, cache: lru.New(maxSources)}
}

// edition is a version of a ConfigMap or a Secret.
type edition struct {
	kind    string
	key     client.ObjectKey
	version string
}

// content is what is in it.
type content struct {
	data map[string][]byte
	kind corev1.SecretType
}

// get returns what is in a ConfigMap or a Secret. The error is NotFound if there is none.
func (s *Sources) get(ctx context.Context, kind string, key client.ObjectKey) (content, error) {
	known := &metav1.PartialObjectMetadata{}
	known.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	if err := s.Metadata.Get(ctx, key, known, client.UnsafeDisableDeepCopy); err != nil {
		return content{}, err
	}
	version := edition{kind, key, known.ResourceVersion}
	if found, ok := s.cache.Get(version); ok {
		return found.(content), nil //nolint:forcetypeassert // nothing else is put in
	}
	c, current, err := s.read(ctx, kind, key)
	if err != nil {
		return content{}, err
	}
	s.cache.Add(edition{kind, key, current}, c)
	return c, nil
}

func (s *Sources) read(ctx context.Context, kind string, key client.ObjectKey) (content, string, error) {
	if kind == "ConfigMap" {
		m := &corev1.ConfigMap{}
		if err := s.Live.Get(ctx, key, m); err != nil {
			return content{}, "", err
		}
		c := content{data: map[string][]byte{}}
		for k, v := range m.BinaryData {
			c.data[k] = v
		}
		for k, v := range m.Data {
			c.data[k] = []byte(v)
		}
		return c, m.ResourceVersion, nil
	}
	m := &corev1.Secret{}
	if err := s.Live.Get(ctx, key, m); err != nil {
		return content{}, "", err
	}
	return content{data: m.Data, kind: m.Type}, m.ResourceVersion, nil
}

// value returns one key of a ConfigMap or a Secret.
func (s *Sources) value(ctx context.Context, kind string, key client.ObjectKey, name string) ([]byte, error) {
	c, err := s.get(ctx, kind, key)
	if apierrors.IsNotFound(err) {
		return nil, &missing{fmt.Sprintf("%s %q does not exist", kind, key)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind, key, err)
	}
	value, ok := c.data[name]
	if !ok {
		return nil, &missing{fmt.Sprintf("%s %q has no key %q", kind, key, name)}
	}
	return value, nil
}

// missing says that something is not there, and is told when it comes.
type missing struct{ what string }

func (m *missing) Error() string { return m.what }

// Data is what is in a ConfigMap or a Secret. The error is NotFound if there is none. The caller must not change it.
func (s *Sources) Data(ctx context.Context, kind string, key client.ObjectKey) (map[string][]byte, error) {
	found, err := s.get(ctx, kind, key)
	return found.data, err
}
