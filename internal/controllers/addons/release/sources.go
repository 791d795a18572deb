package release

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/contents"
)

// Sources reads ConfigMaps and Secrets, each version of one once.
type Sources struct{ store *contents.Store }

// NewSources returns one that remembers nothing yet. What is metadata watches, and knows which version is the newest.
func NewSources(metadata, live client.Reader) *Sources {
	return &Sources{contents.New(metadata, live)}
}

// content is what is in a ConfigMap or a Secret.
type content struct {
	data map[string][]byte
	kind corev1.SecretType
}

// get returns what is in a ConfigMap or a Secret. The error is NotFound if there is none.
func (s *Sources) get(ctx context.Context, kind string, key client.ObjectKey) (content, error) {
	if kind != "ConfigMap" {
		secret, err := s.store.Secret(ctx, key)
		return content{secret.Data, secret.Type}, err
	}
	found, err := s.store.ConfigMap(ctx, key)
	if err != nil {
		return content{}, err
	}
	data := maps.Clone(found.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range found.Data {
		data[k] = []byte(v)
	}
	return content{data: data}, nil
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
