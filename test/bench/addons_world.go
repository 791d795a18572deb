package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeclient "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/test/artifacttest"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

// addonWorld is a plane with workload clusters that are API servers and nothing else, and a repository with one chart.
type addonWorld struct {
	bench    *bench
	client   client.Client
	direct   kubeclient.Interface
	servers  []*kubetest.Server
	relays   []*relay
	charts   *artifacttest.Repository
	ca       corev1.SecretReference
	cleanups *cleanups
	// idle are the requests in a second when nothing happens.
	idle figures
}

// cleanups lets servers that are made for tests serve a benchmark.
type cleanups struct {
	testing.TB
	all []func()
}

func (c *cleanups) Helper()           {}
func (c *cleanups) Cleanup(f func())  { c.all = append(c.all, f) }
func (c *cleanups) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

var benchChart = map[string]string{
	"templates/all.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {values: {{ .Values | toJson | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: main, image: bench}]}
`,
}

func newAddonWorld(ctx context.Context, b *bench) (*addonWorld, error) {
	w := &addonWorld{bench: b, cleanups: &cleanups{}}
	cfg, err := clientcmd.BuildConfigFromFlags("", b.home+"/kubeconfig")
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	if w.client, err = clustertest.NewClient(cfg); err != nil {
		return nil, err
	}
	if w.direct, err = kubeclient.NewForConfig(cfg); err != nil {
		return nil, err
	}
	w.charts = artifacttest.NewRepository(w.cleanups, artifacttest.ServerOptions{TLS: true})
	w.charts.Publish("bench", "1.0.0", artifacttest.Chart(w.cleanups, "bench", "1.0.0", benchChart))
	w.ca = corev1.SecretReference{Name: "charts-ca"}
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: w.ca.Name}, Data: map[string][]byte{"ca.crt": w.charts.Access().CA}}
	if err := w.client.Create(ctx, ca); err != nil {
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// start brings up the workload clusters and registers them.
func (w *addonWorld) start(ctx context.Context) error {
	w.servers = make([]*kubetest.Server, addonServers)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for i := range w.servers {
		group.Go(func() (err error) {
			w.servers[i], err = kubetest.Run(groupCtx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, s := range w.servers {
		config, err := w.behindRelay(s.Config)
		if err != nil {
			return err
		}
		labels := map[string]string{"bench": "addons", "silent": "no"}
		if i < 2 {
			labels["silent"] = "later"
		}
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("bench-%d", i), Labels: labels}}
		if err := clustertest.Register(ctx, w.client, cluster, config); err != nil {
			return err
		}
		if _, err := s.Clientset(w.cleanups).CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "floor"}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := wait(ctx, settle); err != nil {
		return err
	}
	return w.listen(ctx)
}

func (c *cleanups) Context() context.Context { return context.Background() }

// behindRelay puts something before a server that can fall silent.
func (w *addonWorld) behindRelay(config *rest.Config) (*rest.Config, error) {
	u, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	r, err := newRelay(u.Host)
	if err != nil {
		return nil, err
	}
	w.relays = append(w.relays, r)
	out := rest.CopyConfig(config)
	out.Host = "https://" + r.listener.Addr().String()
	return out, nil
}

func (w *addonWorld) close() {
	for _, s := range w.servers {
		if s != nil {
			s.Stop()
		}
	}
	for _, r := range w.relays {
		r.listener.Close()
	}
	for _, f := range w.cleanups.all {
		f()
	}
}

// figures are what a step cost.
type figures struct {
	releases int
	took     time.Duration
	// cpu is the manager's.
	cpu                             time.Duration
	workload, management, downloads float64
}

func (f figures) String() string {
	n := float64(f.releases)
	text := fmt.Sprintf("%.1f s", f.took.Seconds())
	if f.cpu > 0 {
		text += fmt.Sprintf(", %.1f ms of CPU each", float64(f.cpu.Milliseconds())/n)
	}
	text += fmt.Sprintf(", %.1f workload requests each", f.workload/n)
	if f.cpu > 0 {
		text += fmt.Sprintf(", %.1f management requests each, %.0f to the repository in all", f.management/n, f.downloads)
	}
	return text
}

// step measures something that the manager does.
func (w *addonWorld) step(ctx context.Context, releases int, do func() error) (figures, error) {
	before, err := w.count(ctx)
	if err != nil {
		return figures{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return figures{}, err
	}
	took := time.Since(began)
	after, err := w.count(ctx)
	return figures{
		releases: releases, took: took, cpu: after.cpu - before.cpu, downloads: after.downloads - before.downloads,
		workload:   after.workload - before.workload - w.idle.workload*took.Seconds(),
		management: after.management - before.management - w.idle.management*took.Seconds(),
	}, err
}

// listen finds out how many requests in a second API servers have when nothing happens: they talk to themselves.
func (w *addonWorld) listen(ctx context.Context) error {
	const long = 10 * time.Second
	before, err := w.count(ctx)
	if err != nil {
		return err
	}
	if err := wait(ctx, long); err != nil {
		return err
	}
	after, err := w.count(ctx)
	w.idle = figures{workload: (after.workload - before.workload) / long.Seconds(), management: (after.management - before.management) / long.Seconds()}
	return err
}

func (w *addonWorld) count(ctx context.Context) (f figures, err error) {
	pid, err := w.manager(ctx)
	if err != nil {
		return f, err
	}
	if f.cpu, err = cpuTime(pid); err != nil {
		return f, err
	}
	f.downloads = float64(len(w.charts.Requests()))
	if f.management, err = requests(ctx, w.direct); err != nil {
		return f, err
	}
	for _, s := range w.servers {
		n, err := requests(ctx, s.Clientset(w.cleanups))
		if err != nil {
			return f, err
		}
		f.workload += n
	}
	return f, nil
}

// requests is how many a server has answered about objects, without watches.
func requests(ctx context.Context, c kubeclient.Interface) (float64, error) {
	raw, err := c.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, m := range families["apiserver_request_total"].GetMetric() {
		label := map[string]string{}
		for _, l := range m.GetLabel() {
			label[l.GetName()] = l.GetValue()
		}
		if label["resource"] != "" && label["verb"] != "WATCH" && label["resource"] != "leases" && label["verb"] != "LIST" && !strings.HasPrefix(label["group"], "apiextensions") {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum, nil
}

// relay passes connections on, or keeps silent.
type relay struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	silent chan struct{}
	open   map[net.Conn]bool
}

func newRelay(target string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: l, target: target, open: map[net.Conn]bool{}}
	go r.serve()
	return r, nil
}

func (r *relay) serve() {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go r.pass(conn)
		}
	}
}

func (r *relay) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{to, from}, {from, to}} {
		go func() {
			r.copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

// copy passes bytes on while the relay is not silent.
func (r *relay) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.mu.Lock()
		silent := r.silent
		r.mu.Unlock()
		if silent != nil {
			<-silent
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = make(chan struct{})
}

func (r *relay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.silent)
	r.silent = nil
}
