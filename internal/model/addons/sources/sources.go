// Package sources reads the ConfigMaps and Secrets that add-ons refer to: their values, credentials
// and keys. Each version of an object is read once. Start with New.
package sources

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/base/contents"
)

// Reader reads ConfigMaps and Secrets.
type Reader struct{ store *contents.Store }

// New returns a Reader that has read nothing yet. It reads versions from metadata, usually a cache,
// and contents from live.
func New(metadata, live client.Reader) *Reader {
	return &Reader{contents.New(metadata, live)}
}

// Content is the content of a ConfigMap or a Secret.
type Content struct {
	Data map[string][]byte
	Type corev1.SecretType
	// Meta is the metadata of the object.
	Meta metav1.Object
}

// Get returns the content of a ConfigMap or a Secret, which the caller must not modify. The error
// is NotFound if the object doesn't exist.
func (r *Reader) Get(ctx context.Context, kind string, key client.ObjectKey) (Content, error) {
	if kind != "ConfigMap" {
		secret, err := r.store.Secret(ctx, key)
		return Content{secret.Data, secret.Type, secret}, err
	}
	found, err := r.store.ConfigMap(ctx, key)
	if err != nil {
		return Content{}, err
	}
	data := maps.Clone(found.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range found.Data {
		data[k] = []byte(v)
	}
	return Content{Data: data, Meta: found}, nil
}

// Data returns the data of a ConfigMap or a Secret, which the caller must not modify. The error is
// NotFound if the object doesn't exist.
func (r *Reader) Data(ctx context.Context, kind string, key client.ObjectKey) (map[string][]byte, error) {
	found, err := r.Get(ctx, kind, key)
	return found.Data, err
}

// Value returns one key of a ConfigMap or a Secret, or a MissingError if the object or the key
// doesn't exist.
func (r *Reader) Value(ctx context.Context, kind string, key client.ObjectKey, name string) ([]byte, error) {
	found, err := r.Get(ctx, kind, key)
	if apierrors.IsNotFound(err) {
		return nil, &MissingError{Kind: kind, Object: key}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind, key, err)
	}
	value, ok := found.Data[name]
	if !ok {
		return nil, &MissingError{Kind: kind, Object: key, Key: name}
	}
	return value, nil
}

// MissingError reports that an object, or a key of it, doesn't exist. A watch notices when it does.
type MissingError struct {
	Kind   string
	Object client.ObjectKey
	// Key is empty if the object itself is missing.
	Key string
}

func (e *MissingError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s %q not found", e.Kind, e.Object)
	}
	return fmt.Sprintf("%s %q has no key %q", e.Kind, e.Object, e.Key)
}
