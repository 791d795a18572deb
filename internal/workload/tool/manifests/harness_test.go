package manifests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// archives is a Fetcher by digest.
type archives map[string][]byte

func (a archives) Fetch(_ context.Context, _ artifact.Ref, resolved artifact.Resolved) ([]byte, error) {
	if data, ok := a[resolved.Digest]; ok {
		return data, nil
	}
	return nil, artifact.ErrNotFound
}

func (a archives) put(t testing.TB, version string, files map[string]string) artifact.Resolved {
	t.Helper()
	data := artifacttest.Archive(t, files)
	sum := sha256.Sum256(data)
	resolved := artifact.Resolved{Version: version, Digest: "sha256:" + hex.EncodeToString(sum[:])}
	a[resolved.Digest] = data
	return resolved
}

// bench is a tool, a connection to the package's API server, and the test's own namespace.
type bench struct {
	*Tool
	archives  archives
	server    *kubetest.Server
	cluster   *workloadtest.Connection
	kube      kubernetes.Interface
	namespace string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{archives: archives{}, server: kubetest.Shared(t, install.Options{})}
	b.kube, b.namespace = b.server.Clientset(t), b.server.Namespace(t)
	b.restart(t)
	return b
}

// restart returns the state of a restarted manager.
func (b *bench) restart(t testing.TB) {
	t.Helper()
	b.Tool, b.cluster = New(b.archives), workloadtest.Connect(t, b.server.Config)
	b.cluster.Until(t, "the watch of records has told all", func() bool {
		_, err := b.Observe(b.cluster.Cluster, tool.ID{Namespace: b.namespace, Name: "any"})
		return err == nil
	})
	if _, err := b.cluster.Discovery().ServerPreferredResources(); err != nil {
		t.Fatal(err)
	}
	b.cluster.Restart()
}

func (b *bench) want(t testing.TB, name, version string, files map[string]string) tool.Want {
	t.Helper()
	return tool.Want{ID: tool.ID{Namespace: b.namespace, Name: name}, Package: artifact.Ref{Name: "web"}, Resolved: b.archives.put(t, version, files)}
}

// mustApply applies, and waits until the watch reports it.
func (b *bench) mustApply(t testing.TB, want tool.Want) tool.State {
	t.Helper()
	state, err := b.Apply(t.Context(), b.cluster.Cluster, want)
	if err != nil {
		t.Fatalf("applying: %v\nrequests: %s", err, strings.Join(b.cluster.Requests(), "\n"))
	}
	b.observed(t, want, state)
	return state
}

func (b *bench) observed(t testing.TB, want tool.Want, state tool.State) {
	t.Helper()
	b.cluster.Until(t, fmt.Sprintf("the watch tells %+v", state), func() bool {
		got, err := b.Observe(b.cluster.Cluster, want.ID)
		return err == nil && got == state
	})
}

// existingObjects returns the ConfigMaps, Services and ServiceAccounts of an installation, and the
// records.
func (b *bench) existingObjects(t testing.TB) []string {
	t.Helper()
	var out []string
	options := metav1.ListOptions{LabelSelector: selector}
	configs, err := b.kube.CoreV1().ConfigMaps(b.namespace).List(t.Context(), options)
	check(t, err)
	for _, m := range configs.Items {
		out = append(out, "ConfigMap "+m.Name+" "+m.Data["greeting"])
	}
	services, err := b.kube.CoreV1().Services(b.namespace).List(t.Context(), options)
	check(t, err)
	for _, s := range services.Items {
		out = append(out, "Service "+s.Name)
	}
	accounts, err := b.kube.CoreV1().ServiceAccounts(b.namespace).List(t.Context(), options)
	check(t, err)
	for _, a := range accounts.Items {
		out = append(out, "ServiceAccount "+a.Name)
	}
	secrets, err := b.kube.CoreV1().Secrets(b.namespace).List(t.Context(), options)
	check(t, err)
	for _, s := range secrets.Items {
		out = append(out, strings.TrimSpace(fmt.Sprintf("Secret %s %s %s", s.Name, s.Labels[revisionLabel], s.Labels[statusLabel])))
	}
	return out
}

// clear deletes all objects of a namespace for the next case.
func (b *bench) clear(t testing.TB, want tool.Want) {
	t.Helper()
	check(t, b.Remove(t.Context(), b.cluster.Cluster, want))
	if left := b.existingObjects(t); left != nil {
		t.Fatalf("left after the removal: %v", left)
	}
	b.observed(t, want, tool.State{})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// with returns files with some changed; empty ones are removed.
func with(files, changed map[string]string) map[string]string {
	out := maps.Clone(files)
	maps.Copy(out, changed)
	maps.DeleteFunc(out, func(_, content string) bool { return content == "" })
	return out
}

// three is a package of three objects.
var three = map[string]string{
	"account.yaml": account,
	"config.yaml":  config,
	"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}], selector: {app: x}}\n",
}

// lines returns a diff as text.
func lines(changes []tool.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Action+" "+c.Object.Kind+" "+c.Object.Name)
		for line := range strings.Lines(c.Diff) {
			out = append(out, "  "+strings.TrimSpace(line))
		}
	}
	return slices.Clip(out)
}
