package contents

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// counted is an API server that counts requests.
type counted struct {
	client.Reader

	asked int
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	c.asked++
	return c.Reader.Get(ctx, key, into, options...)
}

func TestEachFileVersionIsReadOnce(t *testing.T) {
	server := kubetest.Start(t)
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var (
		ns    = server.Namespace(t)
		live  = &counted{Reader: c}
		store = New(c, live)
		key   = client.ObjectKey{Namespace: ns, Name: "it"}
		meta  = metav1.ObjectMeta{Namespace: ns, Name: "it"}
	)
	read := func(want string, asked int) {
		t.Helper()
		for range 2 {
			s, err := store.Secret(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(s.Data["k"]); got != want || live.asked != asked {
				t.Fatalf("read %q with %d questions, want %q with %d", got, live.asked, want, asked)
			}
		}
	}
	if _, err := store.Secret(t.Context(), key); !apierrors.IsNotFound(err) || live.asked != 0 {
		t.Fatalf("missing Secret: got error %v after %d requests", err, live.asked)
	}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": []byte("one")}}
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	read("one", 1)
	secret.Data["k"] = []byte("two")
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	read("two", 2)
	if err := c.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Secret(t.Context(), key); !apierrors.IsNotFound(err) {
		t.Fatalf("deleted Secret: got error %v", err)
	}
	if err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "map"}}); err != nil {
		t.Fatal(err)
	}
	if m, err := store.ConfigMap(t.Context(), key); err != nil || m.Data["k"] != "map" {
		t.Fatalf("a ConfigMap of the same name: %v, %v", m, err)
	}
}
