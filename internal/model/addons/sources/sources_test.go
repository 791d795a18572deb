package sources

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var key = client.ObjectKey{Namespace: "ns", Name: "x"}

func newReader() *Reader {
	c := fake.NewClientBuilder().WithObjects(
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "config"},
			Data:       map[string]string{"text": "a"}, BinaryData: map[string][]byte{"binary": {1}},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", UID: "secret"},
			Type:       corev1.SecretTypeBasicAuth, Data: map[string][]byte{"text": []byte("b")},
		},
	).Build()
	return New(c, c)
}

func TestValueReturnsOneKey(t *testing.T) {
	r := newReader()
	for _, tc := range []struct {
		kind, key string
		object    client.ObjectKey
		want, err string
	}{
		{kind: "ConfigMap", key: "text", object: key, want: "a"},
		{kind: "ConfigMap", key: "binary", object: key, want: "\x01"},
		{kind: "Secret", key: "text", object: key, want: "b"},
		{kind: "Secret", key: "other", object: key, err: `Secret "ns/x" has no key "other"`},
		{kind: "ConfigMap", key: "text", object: client.ObjectKey{Namespace: "ns", Name: "y"}, err: `ConfigMap "ns/y" not found`},
	} {
		got, err := r.Value(t.Context(), tc.kind, tc.object, tc.key)
		if tc.err == "" {
			if err != nil || string(got) != tc.want {
				t.Errorf("%s %s: %q, %v, want %q", tc.kind, tc.key, got, err, tc.want)
			}
			continue
		}
		if missing := new(MissingError); !errors.As(err, &missing) || err.Error() != tc.err {
			t.Errorf("%s %s: error %v, want a MissingError %q", tc.kind, tc.key, err, tc.err)
		}
	}
}

func TestGetReturnsTheTypeOfASecret(t *testing.T) {
	found, err := newReader().Get(t.Context(), "Secret", key)
	if err != nil || found.Type != corev1.SecretTypeBasicAuth {
		t.Errorf("type %q, error %v", found.Type, err)
	}
}

func TestDataOfAMissingObjectIsNotFound(t *testing.T) {
	for _, kind := range []string{"ConfigMap", "Secret"} {
		if _, err := newReader().Data(t.Context(), kind, client.ObjectKey{Namespace: "ns", Name: "y"}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: error %v, want NotFound", kind, err)
		}
	}
}
