package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/addons/tool"
	"github.com/drover-dev/drover/internal/artifact"
	"github.com/drover-dev/drover/internal/install"
	"github.com/drover-dev/drover/internal/test/kubetest"
	"github.com/drover-dev/drover/internal/workload"
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

// put packs a chart and returns how it is named from then on.
func (a *archives) put(t testing.TB, version string, files map[string]string) artifact.Resolved {
	t.Helper()
	data := pack4test(t, version, files)
	sum := sha256.Sum256(data)
	resolved := artifact.Resolved{Version: version, Digest: "sha256:" + hex.EncodeToString(sum[:])}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by[resolved.Digest] = data
	return resolved
}

// pack4test makes the archive of a chart with the name "app". Files are those besides a Chart.yaml.
func pack4test(t testing.TB, version string, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipper := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipper)
	write := func(name, content string) {
		header := &tar.Header{Name: "app/" + name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(archive, content); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := files["Chart.yaml"]; !ok {
		write("Chart.yaml", "apiVersion: v2\nname: app\nversion: "+version+"\n")
	}
	for _, name := range sortedKeys(files) {
		write(name, files[name])
	}
	if err := errors.Join(archive.Close(), zipper.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// errCut is what a request that is cut off fails with.
var errCut = errors.New("cut off")

// wire counts requests, and cuts them off on demand. Watches are neither counted nor cut.
type wire struct {
	mu       sync.Mutex
	requests []string
	// cutAt is the request from which on all fail; 0 lets all pass. lost lets that very one reach the server, but not its answer.
	cutAt int
	lost  bool
	was   bool
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.RawQuery, "watch=true") || strings.Contains(r.URL.RawQuery, "sendInitialEvents") || r.Header.Get("Accept") != "" && isInformer(r) {
			return next.RoundTrip(r)
		}
		w.mu.Lock()
		w.requests = append(w.requests, r.Method+" "+r.URL.Path)
		n, cutAt, lost := len(w.requests), w.cutAt, w.lost
		cut := cutAt > 0 && n >= cutAt
		w.was = w.was || cut
		w.mu.Unlock()
		if !cut {
			return next.RoundTrip(r)
		}
		if lost && n == cutAt {
			response, err := next.RoundTrip(r)
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		return nil, errCut
	})
}

// isInformer tells the lists of watches from ours.
func isInformer(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Has("resourceVersion")
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests, w.cutAt, w.lost, w.was = nil, 0, false, false
}

func (w *wire) cut(at int, lost bool) {
	w.reset()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutAt, w.lost = at, lost
}

func (w *wire) wasCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.was
}

func (w *wire) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.requests...)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// bench is an engine, a connection to the package's API server, and a namespace of the test's own.
type bench struct {
	*Engine
	*archives
	server    *kubetest.Server
	cluster   *workload.Cluster
	wire      *wire
	namespace string
	events    chan workload.Event
	close     func()
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{archives: &archives{by: map[string][]byte{}}, server: kubetest.Shared(t, install.Options{})}
	b.namespace = b.server.Namespace(t)
	b.restart(t)
	return b
}

// restart is what a manager that starts anew begins with.
func (b *bench) restart(t testing.TB) {
	t.Helper()
	b.Engine = New(b.archives)
	b.wire = &wire{}
	events := make(chan workload.Event, 10000)
	b.events = events
	config := rest.CopyConfig(b.server.Config)
	config.Wrap(b.wire.wrap)
	clusters := workload.New(configs{config}, workload.Options{Notify: func(e workload.Event) { events <- e }})
	if b.close != nil {
		b.close()
	}
	b.close = clusters.Close
	t.Cleanup(clusters.Close)
	var err error
	if b.cluster, err = clusters.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "one"}); err != nil {
		t.Fatal(err)
	}
}

type configs struct{ config *rest.Config }

func (c configs) GetRESTConfig(context.Context, client.ObjectKey) (*rest.Config, error) {
	return c.config, nil
}

func (b *bench) id(name string) tool.ID { return tool.ID{Namespace: b.namespace, Name: name} }

func (b *bench) want(name string, chart artifact.Resolved) tool.Want {
	return tool.Want{ID: b.id(name), Package: artifact.Ref{Name: "app"}, Resolved: chart}
}

// until waits for events until a condition holds.
func (b *bench) until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	timeout := time.After(90 * time.Second)
	for !holds() {
		select {
		case <-b.events:
		case <-timeout:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// sync waits until the watch of releases has told all, and the kinds of the cluster are known.
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

// observed waits until the watch tells a state.
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
		t.Fatalf("applying: %v\nrequests: %s", err, strings.Join(b.wire.seen(), "\n"))
	}
	return state
}

// statuses are those of all revisions of a release, the oldest first.
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

// four is a chart of four objects. Its Service takes no address, for the test server has few.
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

// with returns files with some changed; empty ones are left out.
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
