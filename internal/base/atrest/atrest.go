// Package atrest holds what embedded planes and clusters have in common when they encrypt Secrets
// at rest: NewKey generates a key, and Rewrite encrypts stored Secrets with the key that writes. It
// stores no keys, and does not know which of them an API server uses.
package atrest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/metadata"
)

const (
	keyLength      = 32
	secretsPerPage = 500
)

// NewKey generates a key for the secretbox provider. Its name, which is stored with everything that
// it encrypts, is the time.
func NewKey(now time.Time) (apiserverv1.Key, error) {
	secret := make([]byte, keyLength)
	if _, err := rand.Read(secret); err != nil {
		return apiserverv1.Key{}, fmt.Errorf("generating an encryption key: %w", err)
	}
	return apiserverv1.Key{Name: "key-" + now.UTC().Format("20060102-150405.000"), Secret: base64.StdEncoding.EncodeToString(secret)}, nil
}

// Rewrite sends an empty patch for every Secret, so that concurrent changes are kept, and returns
// how many there are. The API server compares what it would store with what is stored, sees that
// the provider differs, and writes.
func Rewrite(ctx context.Context, to metadata.Interface) (int, error) {
	all := to.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	count, page := 0, metav1.ListOptions{Limit: secretsPerPage}
	for {
		list, err := all.List(ctx, page)
		if err != nil {
			return count, fmt.Errorf("listing Secrets: %w", err)
		}
		for _, s := range list.Items {
			_, err := all.Namespace(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return count, fmt.Errorf("encrypting Secret %s/%s: %w", s.Namespace, s.Name, err)
			}
			count++
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return count, nil
		}
	}
}
