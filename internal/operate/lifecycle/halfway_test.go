package lifecycle

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/operate/lifecycle/phase"
	"github.com/drover-dev/drover/internal/plane"
)

func TestUpgradeAcceptsAClusterPausedByItsOwnMove(t *testing.T) {
	w := newWorld(t)
	c := w.workload("moving")
	w.must(c.connect(t.Context()))
	w.must(c.applyAll(t.Context()))
	live := &anywherev1.Cluster{}
	w.must(w.client.Get(t.Context(), c.key(), live))
	w.must(annotate(t.Context(), w.client, live, map[string]string{anywherev1.PausedAnnotation: "true"}))
	if err := w.run(c.setupUpgrade); err == nil || !strings.Contains(err.Error(), "is paused") {
		t.Errorf("a cluster paused by a user: %v", err)
	}
	w.must(annotate(t.Context(), w.client, live, map[string]string{bootstrap.PausedForMove: "moving"}))
	if err := w.run(c.setupUpgrade); err != nil {
		t.Errorf("what a move has paused: %v", err)
	}
	w.must(client.IgnoreNotFound(w.client.Delete(t.Context(), live)))
}

func TestCleanupOfNothingSucceeds(t *testing.T) {
	dir := t.TempDir()
	m := &Management{Options: Options{Dir: dir}, Config: clusterOf(1, nil), Bootstrap: plane.Home{Dir: filepath.Join(dir, "bootstrap")}}
	m.Config.Cluster.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "mgmt"}
	undo := func() ([]phase.Result, error) {
		plan, err := m.Delete()
		if err != nil {
			t.Fatal(err)
		}
		return plan.Run(t.Context(), m.files().Record(), func(phase.Event) {})
	}
	if _, err := undo(); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("deleting what may be elsewhere: %v", err)
	}
	m.Undo = true
	results, err := undo()
	if err != nil || len(results) != 7 || results[6].Skipped != "nothing was created" {
		t.Errorf("undoing: %v, %v", results, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("got leftovers %v, want none", left)
	}
	if err := m.files().write(m.files().Kubeconfig(), []byte("a finished cluster")); err != nil {
		t.Fatal(err)
	}
	var notLeft *NotLeftError
	if _, err := undo(); !errors.As(err, &notLeft) {
		t.Errorf("undoing a finished creation: %v", err)
	}
}

func TestRemainsOfABootstrapPlaneAreDeleted(t *testing.T) {
	m := &Management{Bootstrap: plane.Home{Dir: filepath.Join(t.TempDir(), "planes", "mgmt")}}
	if err := os.MkdirAll(filepath.Join(m.Bootstrap.Dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.sharedKey(), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.deleteBootstrap(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(m.Bootstrap.Dir)); err == nil {
		t.Error("it is still there")
	}
}

func TestBootstrapPlaneSharesTheClustersKey(t *testing.T) {
	w := newWorld(t)
	m := w.management()
	w.must(ensureNamespace(t.Context(), w.client, config.Namespace))
	sign := func() (file, key string) {
		var o plane.Options
		forget, err := m.shareKey(t.Context(), &o)
		w.must(err)
		content, _ := os.ReadFile(o.BundleKey)
		forget()
		if exists(o.BundleKey) && o.BundleKey != "" {
			t.Errorf("%s still exists, want it deleted", o.BundleKey)
		}
		return o.BundleKey, string(content)
	}
	if file, _ := sign(); file != "" {
		t.Errorf("a cluster without a key has %s", file)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.BundleKeySecret}, Data: map[string][]byte{config.BundleKeyFile: []byte("key")}}
	w.must(w.client.Create(t.Context(), secret))
	t.Cleanup(func() { _ = w.client.Delete(context.Background(), secret) })
	if _, key := sign(); key != "key" {
		t.Errorf("the key is %q", key)
	}
	m.firstInstall = true
	if file, _ := sign(); file != "" {
		t.Errorf("got file %s of a missing cluster", file)
	}
}
