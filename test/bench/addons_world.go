package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"

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

// addonWorld is a plane with bare API servers as workload clusters, and a repository with one
// chart.
type addonWorld struct {
	bench    *bench
	client   client.Client
	direct   kubeclient.Interface
	follower *follower
	servers  []*kubetest.Server
	relays   []*relay
	charts   *artifacttest.Repository
	ca       corev1.SecretReference
	cleanups *cleanups
	// idle is the cost of an idle second.
	idle figures
}

// cleanups adapts test servers to a benchmark.
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
	if w.follower, err = follow(ctx, cfg, w.client); err != nil {
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

// start starts and registers the workload clusters.
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
		if err := makeFloor(ctx, s.Clientset(w.cleanups)); err != nil {
			return err
		}
	}
	if err := makeFloor(ctx, w.direct); err != nil {
		return err
	}
	if err := wait(ctx, settle); err != nil {
		return err
	}
	return w.listen(ctx)
}

func makeFloor(ctx context.Context, c kubeclient.Interface) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: floorNamespace}}
	_, err := c.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

func (c *cleanups) Context() context.Context { return context.Background() }

// behindRelay puts a relay before a server.
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
	w.follower.stop()
	var stopping sync.WaitGroup
	for _, s := range w.servers {
		if s != nil {
			stopping.Go(s.Stop)
		}
	}
	stopping.Wait()
	for _, r := range w.relays {
		r.listener.Close()
	}
	for _, f := range w.cleanups.all {
		f()
	}
}
