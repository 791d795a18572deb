package bundles

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/controllers/reconcile"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

func newKey(t *testing.T) (*ecdsa.PrivateKey, bundle.Keys) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := bundle.ParseKeys(map[string][]byte{"test": []byte(base64.StdEncoding.EncodeToString(der))})
	if err != nil {
		t.Fatal(err)
	}
	return key, keys
}

// signed returns a signed bundle.
func signed(t *testing.T, key *ecdsa.PrivateKey, name string, changes ...func(*packagesv1.PackageBundle)) *packagesv1.PackageBundle {
	t.Helper()
	b := &packagesv1.PackageBundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: name},
		Spec: packagesv1.PackageBundleSpec{Packages: []packagesv1.BundlePackage{{
			Name: "hello", Source: packagesv1.BundlePackageSource{Repository: "hello", Versions: []packagesv1.SourceVersion{{Name: "1.0.0", Digest: "sha256:1"}}},
		}}},
	}
	if err := bundle.Sign(b, key); err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(b)
	}
	return b
}

func downloaded(b *packagesv1.PackageBundle) {
	b.Annotations[packagesv1.DownloadedAnnotation] = "registry.test/bundles:latest"
}

func TestVerify(t *testing.T) {
	key, keys := newKey(t)
	for name, test := range map[string]struct {
		bundle    *packagesv1.PackageBundle
		state     packagesv1.PackageBundleStateEnum
		signature string
		version   string
	}{
		"good":    {signed(t, key, "v1-36-1"), "available", "", ""},
		"changed": {signed(t, key, "v1-36-1", func(b *packagesv1.PackageBundle) { b.Spec.Packages[0].Name = "bye" }), "invalid", "The signature is invalid", ""},
		"unsigned": {
			signed(t, key, "v1-36-1", func(b *packagesv1.PackageBundle) { delete(b.Annotations, packagesv1.SignatureAnnotation) }), "invalid", "Missing signature", "",
		},
		"badly named": {signed(t, key, "newest"), "invalid", "", ""},
		"too new": {
			signed(t, key, "v1-36-1", func(b *packagesv1.PackageBundle) { b.Spec.MinVersion = "v9.0.0" }), "controller upgrade required", "", "requires Drover v9.0.0",
		},
		"too new and changed": {
			signed(t, key, "v1-36-1", func(b *packagesv1.PackageBundle) { b.Spec.MinVersion, b.Spec.Packages[0].Name = "v9.0.0", "bye" }),
			"controller upgrade required", "The signature is invalid", "requires Drover v9.0.0",
		},
		"other namespace": {signed(t, key, "v1-36-1", func(b *packagesv1.PackageBundle) { b.Namespace = "default" }), "ignored", "", ""},
		"downloaded":      {signed(t, key, "v1-36-1", downloaded), "available", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := verify(test.bundle, keys, "v1.0.0")
			if f.state() != test.state || !says(f.signature, test.signature) || !says(f.version, test.version) {
				t.Errorf("verify() = %+v, state %q", f, f.state())
			}
			report(test.bundle, f)
			ready := meta.IsStatusConditionTrue(test.bundle.Status.Conditions, packagesv1.Ready)
			if ready != (test.state == packagesv1.BundleAvailable) {
				t.Errorf("conditions %+v", test.bundle.Status.Conditions)
			}
		})
	}
}

// says reports whether an error contains words, or whether both are empty.
func says(err error, words string) bool {
	if err == nil || words == "" {
		return err == nil && words == ""
	}
	return strings.Contains(err.Error(), words)
}

func TestSuperseded(t *testing.T) {
	all := []string{"v1-36-2", "v1-36-9", "v1-36-10", "v1-36-11", "v1-35-100", "v1-37-1", "odd"}
	want := map[string]bool{"v1-36-2": true}
	got := map[string]bool{}
	for _, name := range all {
		if superseded(name, all, 3) {
			got[name] = true
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !superseded("v1-37-1", all, 0) {
		t.Error("the newest bundle is kept although Keep is 0")
	}
}

func TestUnusedBundlesArePruned(t *testing.T) {
	key, keys := newKey(t)
	c := start(t, keys, 2)
	ctx := t.Context()
	user := &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: "billy"}, Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: "v1-36-1"},
	}
	must(t, c.Create(ctx, user))
	must(t, c.Create(ctx, signed(t, key, "v1-36-2"))) // by hand
	for _, name := range []string{"v1-36-1", "v1-36-3", "v1-36-4", "v1-35-1"} {
		must(t, c.Create(ctx, signed(t, key, name, downloaded)))
	}
	until(t, c, "all are judged", func(all map[string]packagesv1.PackageBundleStateEnum) bool {
		return len(all) == 5 && count(all, packagesv1.BundleAvailable) == 5
	})
	must(t, c.Create(ctx, signed(t, key, "v1-36-5", downloaded)))
	until(t, c, "the one that two newer ones follow is gone", func(all map[string]packagesv1.PackageBundleStateEnum) bool {
		return names(all) == "v1-35-1 v1-36-1 v1-36-2 v1-36-4 v1-36-5"
	})
	user.Spec.ActiveBundle = "v1-36-5"
	must(t, c.Update(ctx, user))
	until(t, c, "the one that was used is gone", func(all map[string]packagesv1.PackageBundleStateEnum) bool {
		return names(all) == "v1-35-1 v1-36-2 v1-36-4 v1-36-5"
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, keys bundle.Keys, keep int) client.Client {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, packagesv1.AddToScheme(scheme))
	mgr, err := reconcile.NewManager(server.Config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	must(t, err)
	c := &Controller{Client: mgr.GetClient(), Events: record.NewFakeRecorder(1000), Keys: keys, Version: "v1.0.0", Keep: keep}
	must(t, c.SetupWithManager(mgr, controller.Options{}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	direct, err := client.New(server.Config, client.Options{Scheme: scheme})
	must(t, err)
	if err := direct.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: packagesv1.Namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return direct
}

func until(t *testing.T, c client.Client, what string, is func(map[string]packagesv1.PackageBundleStateEnum) bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(time.Minute)
	for {
		list, all := &packagesv1.PackageBundleList{}, map[string]packagesv1.PackageBundleStateEnum{}
		must(t, c.List(t.Context(), list))
		for _, b := range list.Items {
			all[b.Name] = b.Status.State
		}
		if is(all) {
			return
		}
		select {
		case <-ticker.C:
		case <-late:
			t.Fatalf("timed out waiting until %s; bundles: %v", what, all)
		}
	}
}

func count(all map[string]packagesv1.PackageBundleStateEnum, state packagesv1.PackageBundleStateEnum) int {
	n := 0
	for _, s := range all {
		if s == state {
			n++
		}
	}
	return n
}

func names(all map[string]packagesv1.PackageBundleStateEnum) string {
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}
