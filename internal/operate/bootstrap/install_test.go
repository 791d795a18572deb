package bootstrap_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/metal"
	"github.com/drover-dev/drover/internal/metal/access"
	"github.com/drover-dev/drover/internal/operate/bootstrap"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestInstallInstallsTheManager(t *testing.T) {
	server := kubetest.Start(t)
	kube := server.Clientset(t)
	key := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(key, []byte("a key"), 0o600))
	o := bootstrap.Options{
		Image: "drover.local/manager:abc", Metal: &bootstrap.Metal{Credentials: access.Credentials{URL: "https://198.18.0.1:1/metal/v1", Token: "t", CA: "PEM"}, Project: "p"},
		BundleKey: key, Registry: "127.0.0.1:5003",
	}
	deployment := func() *appsv1.Deployment {
		t.Helper()
		must(t, bootstrap.Install(t.Context(), server.Config, o))
		d, err := kube.AppsV1().Deployments(config.Namespace).Get(t.Context(), config.ServiceAccount, metav1.GetOptions{})
		must(t, err)
		return d
	}
	if address, err := bootstrap.ManagerRegistry(t.Context(), server.Config); err != nil || address != "" {
		t.Errorf("%v: without a manager, there is a registry at %q", err, address)
	}
	first := deployment()
	c := first.Spec.Template.Spec.Containers[0]
	if c.Image != o.Image || *first.Spec.Replicas != 1 || !strings.Contains(strings.Join(c.Args, " "), "--offer-addr=127.0.0.1:5003") {
		t.Errorf("image %q, %d replicas, %q", c.Image, *first.Spec.Replicas, c.Args)
	}
	if address, err := bootstrap.ManagerRegistry(t.Context(), server.Config); err != nil || address != "127.0.0.1:5003" {
		t.Errorf("%v: the manager's registry is at %q", err, address)
	}
	metalData := map[string][]byte{"METAL_API_URL": []byte(o.Metal.URL), "PACKET_API_KEY": []byte("t"), "METAL_API_CA": []byte("PEM"), "PROJECT_ID": []byte("p")}
	for place, want := range map[[2]string]map[string][]byte{
		{bootstrap.SystemNamespace, bootstrap.MetalSecret}: metalData,
		{config.Namespace, config.CredentialsSecret}:       metalData,
		{config.Namespace, config.BundleKeySecret}:         {config.BundleKeyFile: []byte("a key")},
	} {
		s, err := kube.CoreV1().Secrets(place[0]).Get(t.Context(), place[1], metav1.GetOptions{})
		must(t, err)
		if diff := cmp.Diff(want, s.Data); diff != "" {
			t.Errorf("Secret %v (-want +got):\n%s", place, diff)
		}
	}

	t.Log("again, nothing is written")
	if again := deployment(); again.ResourceVersion != first.ResourceVersion {
		t.Error("a Deployment that is right was written again")
	}

	t.Log("with another image and more machines, it follows")
	for _, name := range []string{"one", "two", "three"} {
		_, err := kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
	}
	o.Image = "drover.local/manager:def"
	if d := deployment(); d.Spec.Template.Spec.Containers[0].Image != o.Image || *d.Spec.Replicas != 2 {
		t.Errorf("image %q, %d replicas", d.Spec.Template.Spec.Containers[0].Image, *d.Spec.Replicas)
	}

	t.Log("with Flux, the manager runs GitOps")
	o.Flux = &config.FluxImages{Source: "example/source:1", Kustomize: "example/kustomize:1"}
	if args := deployment().Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--gitops") || !slices.Contains(args, "--git-webhook-addr=:9444") {
		t.Errorf("arguments %q", args)
	}
	testGitOpsOfManager(t, server)
}

// testGitOpsOfManager turns GitOps off and on again on a cluster that has Drover and Flux.
func testGitOpsOfManager(t *testing.T, server *kubetest.Server) {
	t.Helper()
	flux := func() []string {
		t.Helper()
		all, err := server.Clientset(t).AppsV1().Deployments(config.FluxNamespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		names := []string{}
		for _, d := range all.Items {
			names = append(names, d.Name+" "+d.Spec.Template.Spec.Containers[0].Image)
		}
		return names
	}
	expect := func(when string, gitOps bool, want ...string) {
		t.Helper()
		runs, err := bootstrap.RunsGitOps(t.Context(), server.Config)
		must(t, err)
		if diff := cmp.Diff(append([]string{}, want...), flux()); diff != "" || runs != gitOps {
			t.Errorf("%s, the manager runs GitOps: %t, and Flux (-want +got):\n%s", when, runs, diff)
		}
	}
	expect("at first", true, "kustomize-controller example/kustomize:1", "source-controller example/source:1")
	must(t, bootstrap.DisableGitOps(t.Context(), server.Config))
	must(t, bootstrap.UninstallFlux(t.Context(), server.Config))
	expect("turned off", false)
	images := config.FluxImages{Source: "example/source:2", Kustomize: "example/kustomize:2"}
	must(t, bootstrap.InstallFlux(t.Context(), server.Config, images))
	must(t, bootstrap.EnableGitOps(t.Context(), server.Config))
	expect("turned on again", true, "kustomize-controller example/kustomize:2", "source-controller example/source:2")

	t.Log("a Flux of somebody else is used and left alone")
	must(t, bootstrap.UninstallFlux(t.Context(), server.Config))
	const disowned = `{"metadata":{"annotations":{"` + install.HashAnnotation + `":null}}}`
	kinds, err := apiextensions.NewForConfig(server.Config)
	must(t, err)
	_, err = kinds.ApiextensionsV1().CustomResourceDefinitions().Patch(t.Context(), "gitrepositories.source.toolkit.fluxcd.io", types.MergePatchType, []byte(disowned), metav1.PatchOptions{})
	must(t, err)
	must(t, bootstrap.InstallFlux(t.Context(), server.Config, images))
	expect("beside another Flux", true)
	var foreign *install.ForeignError
	if err := bootstrap.UninstallFlux(t.Context(), server.Config); !errors.As(err, &foreign) {
		t.Errorf("uninstalling another Flux: %v", err)
	}
}

func TestMetalThatMachinesCannotReachIsRejected(t *testing.T) {
	h := metal.Home{Dir: t.TempDir()}
	must(t, h.WriteEndpoint(metal.Endpoint{URL: "http://127.0.0.1:1", Driver: "memory"}))
	if _, err := bootstrap.ReadMetal(h); err == nil || !strings.Contains(err.Error(), "drover metal stop") {
		t.Errorf("got error %v, want one that contains %q", err, "drover metal stop")
	}
	must(t, h.WriteEndpoint(metal.Endpoint{URL: "http://127.0.0.1:1", Machines: "http://198.18.0.1:1", Driver: "local"}))
	if _, err := bootstrap.ReadMetal(h); err == nil || !strings.Contains(err.Error(), "drover metal stop") {
		t.Errorf("without TLS: error %v", err)
	}
}
