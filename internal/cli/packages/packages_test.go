package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/cli/ui"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// world is a management plane without controllers: tests write the status themselves.
type world struct {
	*testing.T

	client     client.Client
	kubeconfig string
	cluster    string
}

func newWorld(t *testing.T, cluster string) *world {
	t.Helper()
	server := kubetest.SharedWithoutWebhooks(t)
	scheme := runtime.NewScheme()
	w := &world{T: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cluster: cluster}
	w.must(errors.Join(clientgoscheme.AddToScheme(scheme), packagesv1.AddToScheme(scheme)))
	var err error
	w.client, err = client.New(server.Config, client.Options{Scheme: scheme})
	w.must(err)
	w.must(clientcmd.WriteToFile(*kubetest.AsKubeconfig(server.Config), w.kubeconfig))
	for _, name := range []string{packagesv1.Namespace, packagesv1.NamespacePrefix + cluster} {
		w.must(client.IgnoreAlreadyExists(w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	w.bundle("v1-36-1", "0.1.0")
	w.bundle("v1-36-2", "0.2.0")
	w.create(&packagesv1.PackageBundleController{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: cluster},
		Spec:       packagesv1.PackageBundleControllerSpec{ActiveBundle: "v1-36-1"},
	})
	return w
}

// bundle creates a bundle with one version of one package.
func (w *world) bundle(name, version string) {
	w.Helper()
	b := &packagesv1.PackageBundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: name},
		Spec: packagesv1.PackageBundleSpec{Packages: []packagesv1.BundlePackage{{
			Name:   "hello-eks-anywhere",
			Source: packagesv1.BundlePackageSource{Repository: "charts/hello", Versions: []packagesv1.SourceVersion{{Name: version, Digest: "sha256:" + version}}},
		}}},
	}
	w.create(b)
	b.Status.State = packagesv1.BundleAvailable
	w.must(w.client.Status().Update(w.Context(), b))
}

// create creates an object and deletes it when the test ends.
func (w *world) create(o client.Object) {
	w.Helper()
	w.must(w.client.Create(w.Context(), o))
	w.Cleanup(func() { _ = w.client.Delete(context.Background(), o) })
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// outcome is the output and the exit code of a command.
type outcome struct {
	out, err string
	code     int
}

// drover runs a command against the plane.
func (w *world) drover(stdin string, args ...string) outcome {
	w.Helper()
	var out, errs bytes.Buffer
	io := &ui.IO{In: strings.NewReader(stdin), Out: &out, Err: &errs}
	root := &cobra.Command{Use: "drover", SilenceErrors: true, SilenceUsage: true}
	root.AddGroup(&cobra.Group{ID: "packages"})
	AddCommands(root, "packages", io)
	root.SetArgs(append(args, "--kubeconfig", w.kubeconfig))
	root.SetOut(&out)
	root.SetErr(&errs)
	code := ui.Report(&errs, root.ExecuteContext(w.Context()))
	return outcome{out.String(), errs.String(), code}
}

func (w *world) ok(args ...string) string {
	w.Helper()
	got := w.drover("", args...)
	if got.code != 0 {
		w.Fatalf("drover %s exited with %d:\n%s", strings.Join(args, " "), got.code, got.err)
	}
	return got.out
}

// installed sets the status that the controller sets after an installation.
func (w *world) installed(name, version string) {
	w.Helper()
	p := &packagesv1.Package{}
	w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: packagesv1.NamespacePrefix + w.cluster, Name: name}, p))
	p.Status.State, p.Status.CurrentVersion, p.Status.ObservedGeneration = packagesv1.StateInstalled, version, p.Generation
	p.Status.Source.Digest = "sha256:" + version
	w.must(w.client.Status().Update(w.Context(), p))
}

func TestPackageLifecycle(t *testing.T) {
	w := newWorld(t, "billy")
	if got := w.ok("list", "packages", "--cluster", "billy"); !strings.Contains(got, "hello-eks-anywhere") || !strings.Contains(got, "0.1.0") {
		t.Errorf("the list of packages is:\n%s", got)
	}
	done := make(chan outcome)
	go func() {
		done <- w.drover("", "install", "package", "Hello-EKS-Anywhere", "-n", "my-hello", "--cluster", "billy",
			"--set", "title=a=b", "--set", "service.port=8080", "--set", "loud=true", "--wait", "1m")
	}()
	key := client.ObjectKey{Namespace: "eksa-packages-billy", Name: "my-hello"}
	p := &packagesv1.Package{}
	for w.client.Get(t.Context(), key, p) != nil {
		select {
		case got := <-done:
			t.Fatalf("install exited with %d before creating the package:\n%s", got.code, got.err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	w.installed("my-hello", "0.1.0")
	if got := <-done; got.code != 0 || !strings.Contains(got.err, "my-hello: installed") {
		t.Errorf("install exited with %d:\n%s", got.code, got.err)
	}
	var config map[string]any
	w.must(yaml.Unmarshal([]byte(p.Spec.Config), &config))
	want := map[string]any{"title": "a=b", "service": map[string]any{"port": 8080.0}, "loud": true}
	if diff := cmp.Diff(want, config); diff != "" || p.Spec.PackageName != "hello-eks-anywhere" {
		t.Errorf("package %s has another config (-want +got):\n%s", p.Spec.PackageName, diff)
	}

	if got := w.ok("get", "packages", "--cluster", "billy"); !strings.Contains(got, "CURRENTVERSION") || !strings.Contains(got, "installed") {
		t.Errorf("the table of packages is:\n%s", got)
	}
	if got := w.ok("describe", "package", "my-hello", "--cluster", "billy"); !strings.Contains(got, "0.1.0") {
		t.Errorf("the description is:\n%s", got)
	}
	if got := w.drover("", "install", "package", "hello-eks-anywhere", "-n", "my-hello", "--cluster", "billy"); got.code != 1 || !strings.Contains(got.err, "already exists") {
		t.Errorf("a second install exited with %d:\n%s", got.code, got.err)
	}

	if got := w.drover("", "upgrade", "packages", "--cluster", "billy", "--bundle-version", "v1-36-2", "--wait", "300ms"); got.code != 1 || !strings.Contains(got.err, "timed out after 300ms") {
		t.Errorf("an upgrade without a controller exited with %d:\n%s", got.code, got.err)
	}
	w.installed("my-hello", "0.2.0")
	w.ok("upgrade", "packages", "--cluster", "billy", "--bundle-version", "v1-36-2", "--wait", "1m")
	if got := w.ok("get", "packagebundles"); !strings.Contains(got, "USED BY") || !lineWith(got, "v1-36-2", "billy") || lineWith(got, "v1-36-1", "billy") {
		t.Errorf("the bundles are:\n%s", got)
	}
	if got := w.ok("get", "pbc"); !lineWith(got, "billy", "v1-36-2") {
		t.Errorf("the controllers are:\n%s", got)
	}

	w.ok("delete", "package", "my-hello", "--cluster", "billy", "--wait", "1m")
	if err := w.client.Get(t.Context(), key, p); !apierrors.IsNotFound(err) {
		t.Errorf("the package was not deleted: %v", err)
	}
}

func lineWith(text string, words ...string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}

// as runs further commands as a user who only has the cluster creator's role in one namespace.
func (w *world) as(user string) {
	w.Helper()
	meta := metav1.ObjectMeta{Namespace: packagesv1.NamespacePrefix + w.cluster, Name: user}
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "drover-cluster-creator"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	config, err := clientcmd.LoadFromFile(w.kubeconfig)
	w.must(err)
	for _, who := range config.AuthInfos {
		who.Impersonate, who.ImpersonateGroups = user, []string{"system:authenticated"}
	}
	w.must(clientcmd.WriteToFile(*config, w.kubeconfig))
}

func TestCreatorManagesPackagesOfOwnCluster(t *testing.T) {
	w := newWorld(t, "restricted")
	w.as("creator")
	text := w.ok("generate", "package", "hello-eks-anywhere", "--cluster", "restricted")
	if got := w.drover(text, "apply", "package", "-f", "-"); got.code != 0 {
		t.Fatal(got.err)
	}
	w.installed("generated-hello-eks-anywhere", "0.1.0")
	if got := w.drover(text, "apply", "package", "-f", "-", "--wait", "1m"); got.code != 0 {
		t.Error(got.err)
	}
	if got := w.ok("get", "packages", "--cluster", "restricted"); !strings.Contains(got, "hello-eks-anywhere") {
		t.Errorf("the packages are\n%s", got)
	}
	w.ok("describe", "package", "generated-hello-eks-anywhere", "--cluster", "restricted")
	w.ok("delete", "package", "generated-hello-eks-anywhere", "--cluster", "restricted")
}

func TestGeneratedPackageCanBeApplied(t *testing.T) {
	w := newWorld(t, "tlhowe")
	manifest := w.ok("generate", "package", "hello-eks-anywhere", "--cluster", "tlhowe")
	if strings.Contains(manifest, "status") || strings.Contains(manifest, "creationTimestamp") || !strings.Contains(manifest, "name: generated-hello-eks-anywhere") {
		t.Errorf("generated:\n%s", manifest)
	}
	for range 2 {
		if got := w.drover(manifest, "apply", "package", "-f", "-"); got.code != 0 {
			t.Fatalf("apply exited with %d:\n%s", got.code, got.err)
		}
	}
	if got := w.drover(manifest, "create", "package", "-f", "-"); got.code != 1 || !strings.Contains(got.err, "already exists") {
		t.Errorf("create of an existing package exited with %d:\n%s", got.code, got.err)
	}
	w.ok("delete", "packages", "generated-hello-eks-anywhere", "--cluster", "tlhowe")
}

func TestRejectedObjectInFileCreatesNothing(t *testing.T) {
	w := newWorld(t, "both")
	file := "apiVersion: packages.eks.amazonaws.com/v1alpha1\nkind: Package\nmetadata: {name: good, namespace: eksa-packages-both}\nspec: {packageName: hello-eks-anywhere}\n" +
		"---\napiVersion: packages.eks.amazonaws.com/v1alpha1\nkind: Package\nmetadata: {name: bad, namespace: eksa-packages-nowhere}\nspec: {packageName: x}\n"
	for _, verb := range []string{"create", "apply"} {
		if got := w.drover(file, verb, "packages", "-f", "-"); got.code != 1 || !strings.Contains(got.err, "eksa-packages-nowhere") {
			t.Errorf("%s exited with %d:\n%s", verb, got.code, got.err)
		}
	}
	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "eksa-packages-both", Name: "good"}, &packagesv1.Package{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the valid object of the file was created: %v", err)
	}
}

func TestUsageErrorsSuggestWhatToDo(t *testing.T) {
	w := newWorld(t, "usage")
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no cluster":                  {[]string{"get", "packages"}, 2, "--cluster is required"},
		"a cluster without packages":  {[]string{"get", "packages", "--cluster", "nobody"}, 1, `packages are not enabled for cluster "nobody"`},
		"an unknown package":          {[]string{"describe", "package", "x", "--cluster", "usage"}, 1, `cluster "usage" has no package x`},
		"neither cluster nor version": {[]string{"list", "packages"}, 2, "please specify kube-version or cluster name"},
		"a version of three numbers":  {[]string{"list", "packages", "--kube-version", "1.36.3"}, 2, "please specify kube-version as <major>.<minor>"},
		"a version without bundles":   {[]string{"list", "packages", "--kube-version", "1.12"}, 1, "no available bundle for Kubernetes 1.12"},
		"a registry and a cluster":    {[]string{"list", "packages", "--cluster", "usage", "--registry", "r"}, 2, "--registry requires --kube-version"},
		"a package in no bundle":      {[]string{"generate", "package", "cat", "--cluster", "usage"}, 1, `package "cat" not found in bundle v1-36-1, which contains: hello-eks-anywhere`},
		"no package to generate":      {[]string{"generate", "package", "--cluster", "usage"}, 2, "The name of the package to install must be specified as an argument"},
		"a set without a value":       {[]string{"install", "package", "hello-eks-anywhere", "-n", "x", "--cluster", "usage", "--set", "title"}, 2, "please specify title as key=value"},
		"contradicting values":        {[]string{"install", "package", "hello-eks-anywhere", "-n", "x", "--cluster", "usage", "--set", "a=1", "--set", "a.b=2"}, 2, "not a map"},
		"no bundle version":           {[]string{"upgrade", "packages", "--cluster", "usage"}, 2, "--bundle-version is required"},
		"an invalid bundle version":   {[]string{"upgrade", "packages", "--cluster", "usage", "--bundle-version", "latest"}, 2, "Invalid bundle name"},
		"no file":                     {[]string{"apply", "package"}, 2, "-f is required"},
		"a missing file":              {[]string{"apply", "package", "-f", "/no/such/file"}, 1, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.drover("", tt.args...); got.code != tt.code || !strings.Contains(got.err, tt.want) {
				t.Errorf("exited with %d, want %d and %q:\n%s", got.code, tt.code, tt.want, got.err)
			}
		})
	}
	if got := w.drover("kind: Pod\napiVersion: v1\nmetadata: {name: x}\n", "apply", "package", "-f", "-"); got.code != 1 || !strings.Contains(got.err, "apply it with kubectl") {
		t.Errorf("a Pod exited with %d:\n%s", got.code, got.err)
	}
}

func TestListReadsTheNewestBundleForAVersion(t *testing.T) {
	w := newWorld(t, "newest")
	broken := &packagesv1.PackageBundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: "v1-36-3"},
		Spec:       packagesv1.PackageBundleSpec{Packages: []packagesv1.BundlePackage{{Name: "broken", Source: packagesv1.BundlePackageSource{Repository: "x", Versions: []packagesv1.SourceVersion{{Name: "1", Digest: "sha256:1"}}}}}},
	}
	w.create(broken)
	broken.Status.State = packagesv1.BundleInvalid
	w.must(w.client.Status().Update(t.Context(), broken))
	if got := w.ok("list", "packages", "--kube-version", "1.36"); !lineWith(got, "hello-eks-anywhere", "0.2.0") || strings.Contains(got, "broken") {
		t.Errorf("the packages are:\n%s", got)
	}
	var listed []packagesv1.BundlePackage
	w.must(json.Unmarshal([]byte(w.ok("list", "packages", "--cluster", "newest", "-o", "json")), &listed))
	if len(listed) != 1 || listed[0].Source.Versions[0].Name != "0.1.0" {
		t.Errorf("the packages of the active bundle are %+v", listed)
	}
}

func TestEmptyClusterSuggestsTheCatalog(t *testing.T) {
	w := newWorld(t, "empty")
	got := w.drover("", "get", "packages", "--cluster", "empty")
	if want := "No packages on cluster empty. Try: drover list packages --cluster empty\n"; got.code != 0 || got.out != "" || got.err != want {
		t.Errorf("got %+v", got)
	}
	var list packagesv1.PackageList
	w.must(json.Unmarshal([]byte(w.ok("get", "packages", "--cluster", "empty", "-o", "json")), &list))
	if list.Kind != "PackageList" || len(list.Items) != 0 {
		t.Errorf("the list is %+v", list)
	}
	if got := w.drover("", "describe", "packages", "--cluster", "empty"); got.code != 1 || !strings.Contains(got.err, "no resources found") {
		t.Errorf("describe exited with %d:\n%s", got.code, got.err)
	}
}

func TestDeletionOfUnknownPackageDeletesNothing(t *testing.T) {
	w := newWorld(t, "keeper")
	w.ok("install", "package", "hello-eks-anywhere", "-n", "kept", "--cluster", "keeper")
	if got := w.drover("", "delete", "packages", "kept", "unknown", "--cluster", "keeper"); got.code != 1 || !strings.Contains(got.err, "unknown") {
		t.Errorf("exited with %d:\n%s", got.code, got.err)
	}
	if got := w.ok("get", "packages", "--cluster", "keeper"); !strings.Contains(got, "kept") {
		t.Errorf("the packages are:\n%s", got)
	}
	w.ok("delete", "package", "kept", "--cluster", "keeper")
}

func TestCompletion(t *testing.T) {
	w := newWorld(t, "completed")
	w.ok("install", "package", "hello-eks-anywhere", "-n", "my-hello", "--cluster", "completed")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"clusters":               {[]string{"get", "packages", "--kubeconfig", w.kubeconfig, "--cluster", ""}, "completed\tuses v1-36-1\n"},
		"packages":               {[]string{"describe", "packages", "--kubeconfig", w.kubeconfig, "--cluster", "completed", ""}, "my-hello\thello-eks-anywhere\n"},
		"packages of no cluster": {[]string{"describe", "packages", "--kubeconfig", w.kubeconfig, ""}, ":4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.complete(tc.args...); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	w.ok("delete", "package", "my-hello", "--cluster", "completed")
}

// complete returns the completions of the last argument.
func (w *world) complete(args ...string) string {
	w.Helper()
	var out bytes.Buffer
	root := &cobra.Command{Use: "drover", SilenceErrors: true, SilenceUsage: true}
	root.AddGroup(&cobra.Group{ID: "packages"})
	AddCommands(root, "packages", &ui.IO{In: strings.NewReader(""), Out: &out, Err: &out})
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
	root.SetOut(&out)
	root.SetErr(&out)
	w.must(root.ExecuteContext(w.Context()))
	return out.String()
}
