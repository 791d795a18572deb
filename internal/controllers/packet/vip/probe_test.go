package vip

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

func ctrlKey(w *world, name string) ctrlclient.ObjectKey {
	return ctrlclient.ObjectKey{Namespace: w.Namespace, Name: name}
}

// secrets is a reader of one Secret.
type secrets map[string][]byte

func (s secrets) Get(_ context.Context, key ctrlclient.ObjectKey, obj ctrlclient.Object, _ ...ctrlclient.GetOption) error {
	data, ok := s[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	obj.(*corev1.Secret).Data = map[string][]byte{"tls.crt": data}
	return nil
}

func (s secrets) List(context.Context, ctrlclient.ObjectList, ...ctrlclient.ListOption) error {
	return nil
}

func TestHTTPProber(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("got an unexpected request for %s", r.URL.Path)
		}
		w.WriteHeader(status)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	_, text, _ := net.SplitHostPort(server.Listener.Addr().String())
	port, _ := strconv.Atoi(text)
	target := Target{Cluster: ctrlclient.ObjectKey{Name: "c"}, Name: "example.com", Addresses: []string{"127.0.0.1"}, Port: int32(port)}

	for _, tc := range []struct {
		name   string
		status int
		target func(*Target)
		cas    []ctrlclient.Reader
		want   bool
	}{
		{name: "a server that is well", status: 200, want: true},
		{name: "a server that wants to know who asks", status: 401, want: true},
		{name: "a server that is not well", status: 500},
		{name: "one address of two suffices", status: 200, target: func(t *Target) { t.Addresses = []string{"127.0.0.2", "127.0.0.1"} }, want: true},
		{name: "closed port", status: 200, target: func(t *Target) { t.Port = 1 }},
		{name: "no address", status: 200, target: func(t *Target) { t.Addresses = nil }},
		{name: "a server with another name", status: 200, target: func(t *Target) { t.Name = "other.invalid" }},
		{name: "a cluster without certificates yet", status: 200, cas: []ctrlclient.Reader{secrets{}}},
		{name: "certificates that only the second reader finds", status: 200, cas: []ctrlclient.Reader{secrets{}, secrets{"c-ca": ca}}, want: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status = tc.status
			one := target
			if tc.target != nil {
				tc.target(&one)
			}
			if tc.cas == nil {
				tc.cas = []ctrlclient.Reader{secrets{"c-ca": ca}}
			}
			if got := (HTTPProber{Secrets: tc.cas}).Healthy(t.Context(), one); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
