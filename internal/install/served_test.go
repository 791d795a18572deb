package install_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

const (
	auditRecords    = "auditrecords.drover.dev"
	auditRecordsKey = "/registry/apiextensions.k8s.io/customresourcedefinitions/" + auditRecords
)

// condition returns a condition of a CRD as etcd has it.
func condition(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Test", "message": "test"}
}

// interrupted replaces a CRD in etcd by what an API server that was killed leaves. The running API
// server observes a new CRD, as the next one would.
func interrupted(t *testing.T, s *kubetest.Server, conditions ...any) {
	t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Etcd}, DialTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	got, err := etcd.Get(t.Context(), auditRecordsKey)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("reading CRD %q from etcd: got %v, %v, want one value", auditRecords, got, err)
	}
	definition := map[string]any{}
	if err := json.Unmarshal(got.Kvs[0].Value, &definition); err != nil {
		t.Fatal(err)
	}
	definition["status"].(map[string]any)["conditions"] = conditions
	changed, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Delete(t.Context(), auditRecordsKey); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the deleted CRD is no longer served", func() bool { return !serves(t, s) }, func() string { return auditRecords })
	if _, err := etcd.Put(t.Context(), auditRecordsKey, string(changed)); err != nil {
		t.Fatal(err)
	}
}

// serves reports whether the API server serves objects of the CRD.
func serves(t *testing.T, s *kubetest.Server) bool {
	t.Helper()
	c, err := metadata.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Resource(schema.GroupVersionResource{Group: "drover.dev", Version: "v1alpha1", Resource: "auditrecords"}).List(t.Context(), metav1.ListOptions{})
	return err == nil
}

func TestUnchangedDefinitionThatWasNeverEstablishedIsServed(t *testing.T) {
	s := kubetest.Start(t)
	o := install.Options{WebhookURL: url, Version: "v1.2.0"}
	apply(t, s, o)
	if !serves(t, s) {
		t.Fatalf("CRD %q is not served after it was installed", auditRecords)
	}
	interrupted(t, s, condition("NamesAccepted", "True"), condition("Established", "False"))
	apply(t, s, o)
	if !serves(t, s) {
		t.Errorf("CRD %q is not served after an install that found it unchanged", auditRecords)
	}
}

func TestErrorNamesDefinitionsThatAreNotServed(t *testing.T) {
	s := kubetest.Start(t)
	o := install.Options{WebhookURL: url, Version: "v1.2.0"}
	apply(t, s, o)
	interrupted(t, s, condition("NamesAccepted", "False"), condition("Established", "False"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := install.Apply(ctx, s.Config, o)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), auditRecords) {
		t.Errorf("got error %v, want a timeout that names %s", err, auditRecords)
	}
}
