package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// create creates proxies, each for all clusters, and waits until they are ready.
func (w *addonWorld) create(ctx context.Context, proxies int) error {
	for i := range proxies {
		if err := w.client.Create(ctx, w.chart(fmt.Sprintf("addon-%03d", i))); err != nil {
			return err
		}
	}
	return w.awaitReady(ctx, proxies, addonServers)
}

func (w *addonWorld) chart(name string) *addonsv1.HelmChartProxy {
	return &addonsv1.HelmChartProxy{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: addonsv1.HelmChartProxySpec{
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"bench": "addons"}},
			ChartName:       "bench", RepoURL: w.charts.URL, Version: "1.0.0", ReleaseName: name, ReleaseNamespace: "bench",
			ValuesTemplate: "cluster: {{ .Cluster.metadata.name }}\nreplicas: 1\n",
			TLSConfig:      &addonsv1.TLSConfig{CASecretRef: &w.ca},
		},
	}
}

// awaitReady waits until a number of proxies are ready on a number of clusters each.
func (w *addonWorld) awaitReady(ctx context.Context, proxies, clusters int) error {
	return w.follower.await(ctx, "add-ons to be ready", func() bool {
		return w.follower.count(func(r seen) bool { return r.ready }) >= proxies*clusters
	})
}

// each updates every proxy.
func (w *addonWorld) each(ctx context.Context, change func(*addonsv1.HelmChartProxy)) error {
	list := &addonsv1.HelmChartProxyList{}
	if err := w.client.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		before := list.Items[i].DeepCopy()
		change(&list.Items[i])
		if err := w.client.Patch(ctx, &list.Items[i], client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return nil
}

// passes is the number of idle reconciles of every object.
const passes = 2

// touch triggers a reconcile of every HelmReleaseProxy and every HelmChartProxy by changing an
// annotation of the repository's CA, which all of them use, and of the HelmChartProxies.
func (w *addonWorld) touch(ctx context.Context, proxies int) error {
	before, err := w.reconciles(ctx)
	if err != nil {
		return err
	}
	for i := range passes {
		mark := map[string]string{"bench": fmt.Sprint(time.Now().UnixNano())}
		ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: w.ca.Name}}
		patch := client.MergeFrom(ca.DeepCopy())
		ca.Annotations = mark
		if err := w.client.Patch(ctx, ca, patch); err != nil {
			return err
		}
		if err := w.each(ctx, func(p *addonsv1.HelmChartProxy) { p.Annotations = mark }); err != nil {
			return err
		}
		if err := w.awaitReconciles(ctx, before+float64((i+1)*proxies*(addonServers+1))); err != nil {
			return err
		}
	}
	return nil
}

// awaitReconciles waits for a number of reconciles. It polls rarely, since responding costs the
// manager CPU time.
func (w *addonWorld) awaitReconciles(ctx context.Context, wanted float64) error {
	for range int(patience / settleReconciles) {
		if err := wait(ctx, settleReconciles); err != nil {
			return err
		}
		if now, err := w.reconciles(ctx); err != nil || now >= wanted {
			return err
		}
	}
	return fmt.Errorf("timed out after %s waiting for every object to be reconciled", patience)
}

const settleReconciles = 2 * time.Second

// hold pauses and resumes all clusters, which affects Cluster API's own reconcilers more than those
// of add-ons.
func (w *addonWorld) hold(ctx context.Context) error {
	clusters := &clusterv1.ClusterList{}
	if err := w.client.List(ctx, clusters); err != nil {
		return err
	}
	for _, paused := range []*bool{ptr.To(true), nil} {
		for i := range clusters.Items {
			before := clusters.Items[i].DeepCopy()
			clusters.Items[i].Spec.Paused = paused
			if err := w.client.Patch(ctx, &clusters.Items[i], client.MergeFrom(before)); err != nil {
				return err
			}
		}
		if err := wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (w *addonWorld) revalue(ctx context.Context) error {
	n := w.follower.count(func(seen) bool { return true })
	err := w.each(ctx, func(p *addonsv1.HelmChartProxy) { p.Spec.ValuesTemplate += "extra: yes\n" })
	if err != nil {
		return err
	}
	return w.follower.await(ctx, "the second revision everywhere", func() bool {
		return w.follower.count(func(r seen) bool { return r.ready && r.revision == 2 }) == n
	})
}

func (w *addonWorld) remove(ctx context.Context) error {
	list := &addonsv1.HelmChartProxyList{}
	if err := w.client.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		if err := w.client.Delete(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	return w.follower.await(ctx, "add-ons to be gone", func() bool { return w.follower.count(func(seen) bool { return true }) == 0 })
}
