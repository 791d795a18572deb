package bundles

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/registry/bundle"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/packagestest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// signed returns a signed bundle. Changes are made after it was signed.
func signed(t *testing.T, by *packagestest.Signer, name string, changes ...func(*packagesv1.PackageBundle)) *packagesv1.PackageBundle {
	t.Helper()
	b := by.Sign(t, packagestest.Bundle(name, packagestest.Package("hello", "1.0.0", "sha256:1")))
	for _, change := range changes {
		change(b)
	}
	return b
}

func downloaded(b *packagesv1.PackageBundle) {
	b.Annotations[packagesv1.DownloadedAnnotation] = "registry.test/bundles:latest"
}

func TestVerify(t *testing.T) {
	key := packagestest.NewSigner(t)
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
			f := verify(test.bundle, key.Keys, "v1.0.0")
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
		t.Error("the newest bundle is not superseded with Keep 0, want it superseded")
	}
}

func TestUnusedBundlesArePruned(t *testing.T) {
	key := packagestest.NewSigner(t)
	c := start(t, key.Keys, 2)
	ctx := t.Context()
	user := &packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: "billy"}, Spec: packagesv1.PackageBundleControllerSpec{ActiveBundle: "v1-36-1"},
	}
	must(t, c.Create(ctx, user))
	must(t, c.Create(ctx, signed(t, key, "v1-36-2"))) // not downloaded
	for _, name := range []string{"v1-36-1", "v1-36-3", "v1-36-4", "v1-35-1"} {
		must(t, c.Create(ctx, signed(t, key, name, downloaded)))
	}
	until(t, c, "all bundles are verified", func(all map[string]packagesv1.PackageBundleStateEnum) bool {
		return len(all) == 5 && count(all, packagesv1.BundleAvailable) == 5
	})
	must(t, c.Create(ctx, signed(t, key, "v1-36-5", downloaded)))
	until(t, c, "the bundle with two newer ones is deleted", func(all map[string]packagesv1.PackageBundleStateEnum) bool {
		return names(all) == "v1-35-1 v1-36-1 v1-36-2 v1-36-4 v1-36-5"
	})
	user.Spec.ActiveBundle = "v1-36-5"
	must(t, c.Update(ctx, user))
	until(t, c, "the bundle that was active is deleted", func(all map[string]packagesv1.PackageBundleStateEnum) bool {
		return names(all) == "v1-35-1 v1-36-2 v1-36-4 v1-36-5"
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	packagestest.Must(t, err)
}

func start(t *testing.T, keys bundle.Keys, keep int) client.Client {
	t.Helper()
	plane := packagestest.NewPlane(t, packagestest.Options{})
	c := &Controller{Client: plane.Manager.GetClient(), Events: &packagestest.Events{}, Keys: keys, Version: "v1.0.0", Keep: keep}
	must(t, c.SetupWithManager(plane.Manager, controller.Options{}))
	ctx, stop := context.WithCancel(context.Background())
	ended := plane.Run(ctx, t)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
	return plane.Direct
}

func until(t *testing.T, c client.Client, what string, is func(map[string]packagesv1.PackageBundleStateEnum) bool) {
	t.Helper()
	var all map[string]packagesv1.PackageBundleStateEnum
	kubetest.Eventually(t, what, func() bool {
		list := &packagesv1.PackageBundleList{}
		must(t, c.List(t.Context(), list))
		all = map[string]packagesv1.PackageBundleStateEnum{}
		for _, b := range list.Items {
			all[b.Name] = b.Status.State
		}
		return is(all)
	}, func() string { return fmt.Sprintf("bundles are %v", all) })
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
