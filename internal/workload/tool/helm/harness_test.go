package helm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/registry/artifact"
	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/test/workloadtest"
	"github.com/drover-dev/drover/internal/workload"
	"github.com/drover-dev/drover/internal/workload/tool"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }

// archives is a Fetcher of charts by digest.
type archives struct {
	mu sync.Mutex
	by map[string][]byte
}

func (a *archives) Fetch(_ context.Context, _ artifact.Ref, resolved artifact.Resolved) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if data, ok := a.by[resolved.Digest]; ok {
		return data, nil
	}
	return nil, artifact.ErrNotFound
}

// put packs a chart and returns its reference.
func (a *archives) put(t testing.TB, version string, files map[string]string) artifact.Resolved {
	t.Helper()
	data := artifacttest.Chart(t, "app", version, files)
	sum := sha256.Sum256(data)
	resolved := artifact.Resolved{Version: version, Digest: "sha256:" + hex.EncodeToString(sum[:])}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by[resolved.Digest] = data
	return resolved
}

// bench is an engine, a connection to the package's API server, and the test's own namespace.
type bench struct {
	*Engine
	*archives
	server    *kubetest.Server
	cluster   *workload.Cluster
	wire      *workloadtest.Connection
	namespace string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{archives: &archives{by: map[string][]byte{}}, server: kubetest.Shared(t, install.Options{})}
	b.namespace = b.server.Namespace(t)
	b.restart(t)
	return b
}

// restart returns the state of a restarted manager.
func (b *bench) restart(t testing.TB) {
	t.Helper()
	b.Engine = New(b.archives)
	if b.wire != nil {
		b.wire.Close()
	}
	b.wire = workloadtest.Connect(t, b.server.Config)
	b.cluster = b.wire.Cluster
}

func (b *bench) id(name string) tool.ID { return tool.ID{Namespace: b.namespace, Name: name} }

func (b *bench) want(name string, chart artifact.Resolved) tool.Want {
	return tool.Want{ID: b.id(name), Package: artifact.Ref{Name: "app"}, Resolved: chart}
}

// until waits for events until a condition is met.
func (b *bench) until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	b.wire.Until(t, what, holds)
}

// sync waits until the watch of releases has synced and the kinds of the cluster are known.
func (b *bench) sync(t testing.TB) {
	t.Helper()
	b.until(t, "the watch of releases has told all", func() bool {
		_, err := b.Observe(b.cluster, b.id("any"))
		return err == nil
	})
	if _, err := capabilitiesOf(b.cluster); err != nil {
		t.Fatal(err)
	}
}

// observed waits until the watch reports a state.
func (b *bench) observed(t testing.TB, want tool.Want, state tool.State) {
	t.Helper()
	b.until(t, fmt.Sprintf("the watch tells %+v", state), func() bool {
		got, err := b.Observe(b.cluster, want.ID)
		return err == nil && got == state
	})
}

func (b *bench) mustApply(t testing.TB, want tool.Want) tool.State {
	t.Helper()
	state, err := b.Apply(t.Context(), b.cluster, want)
	if err != nil {
		t.Fatalf("applying: %v\nrequests: %s", err, strings.Join(b.wire.Requests(), "\n"))
	}
	return state
}

// statuses returns the statuses of all revisions of a release, oldest first.
func (b *bench) statuses(t testing.TB, name string) []string {
	t.Helper()
	h, err := records{cluster: b.cluster, id: b.id(name)}.listed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := len(h) - 1; i >= 0; i-- {
		out = append(out, fmt.Sprintf("%d %s", h[i].revision, h[i].status))
	}
	return out
}

// four is a chart of four objects. Its Service has no address, since the test server has few.
var four = map[string]string{
	"values.yaml":              "greeting: hello\nreplicas: 1\n",
	"templates/account.yaml":   "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: '{{ .Release.Name }}'}\n",
	"templates/config.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {greeting: '{{ .Values.greeting }}'}\n",
	"templates/service.yaml":   "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {clusterIP: None, ports: [{port: 80}], selector: {app: x}}\n",
	"templates/workload.yaml":  deployment,
	"templates/NOTES.txt":      "Say {{ .Values.greeting }}.\n",
	"templates/_unused.tpl":    "{{ define \"unused\" }}{{ end }}",
	"templates/tests/test.txt": "",
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ .Release.Name }}'}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers: [{name: main, image: 'example.invalid/app:{{ .Chart.Version }}'}]
`

// with returns files with some changed; empty ones are removed.
func with(files, changed map[string]string) map[string]string {
	out := map[string]string{}
	for name, content := range files {
		out[name] = content
	}
	for name, content := range changed {
		out[name] = content
		if content == "" {
			delete(out, name)
		}
	}
	return out
}
