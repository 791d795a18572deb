package backup

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/model/backup/archive"
	"github.com/drover-dev/drover/internal/model/backup/storage"
	"github.com/drover-dev/drover/internal/test/etcdtest"
	"github.com/drover-dev/drover/internal/workload/etcd"
)

func TestSavedSnapshotsVerifyAgainstTheClustersCA(t *testing.T) {
	e := etcdtest.Start(t, 1)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Cluster: e.Cluster, Storage: storage.Directory{Path: t.TempDir()}, Recipients: []age.Recipient{identity.Recipient()},
		Now: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
	}
	saved, err := Save(t.Context(), o)
	if err != nil || saved.Name != "20260102T030405Z" || saved.Manifest.Cluster != "dev" || saved.Member != "m0" || saved.Manifest.Revision == 0 {
		t.Fatalf("saved %+v: %v", saved, err)
	}
	file, err := os.ReadFile(saved.Location)
	if err != nil {
		t.Fatal(err)
	}
	check := etcd.NewCheck()
	m, err := archive.Read(bytes.NewReader(file), archive.Key{Identities: []age.Identity{identity}, Signers: e.Authority.Certs}, check)
	if err != nil || check.Verify() != nil || m.Size != saved.Manifest.Size {
		t.Errorf("read %+v: %v, %v", m, err, check.Verify())
	}
	if _, err := Save(t.Context(), o); err == nil || !strings.Contains(err.Error(), storage.ErrExists.Error()) {
		t.Errorf("the same second again: %v", err)
	}
}

func TestClustersWithoutTheKeyOfTheirCAAreRejected(t *testing.T) {
	e := etcdtest.Start(t, 1)
	c := e.Objects.(client.Client)
	ca := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "dev-ca"}, ca); err != nil {
		t.Fatal(err)
	}
	delete(ca.Data, corev1.TLSPrivateKeyKey)
	if err := c.Update(t.Context(), ca); err != nil {
		t.Fatal(err)
	}
	if _, err := Save(t.Context(), Options{Cluster: e.Cluster, Storage: storage.Directory{Path: t.TempDir()}}); err == nil || !strings.Contains(err.Error(), "doesn't have the key") {
		t.Errorf("got %v, want an error about the key", err)
	}
}
