package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

const (
	// addonServers is the number of workload clusters, each a real API server.
	addonServers = 8
	// addonWriters is what the manager does at a time by default, so the floor does as much.
	addonWriters = 32
)

// addonSizes are how many releases are installed, a multiple of the clusters.
var addonSizes = []int{104, 304}

// measureAddons installs releases on real API servers, beside a bare client that writes the same objects, and then does to them what
// happens to releases.
func measureAddons(ctx context.Context, b *bench) error {
	f := &bench{drover: b.drover, work: b.work, idle: b.idle, home: filepath.Join(b.work, "addons")}
	defer f.remove(context.WithoutCancel(ctx))
	if _, err := b.run(ctx, "down"); err != nil {
		return err
	}
	if _, err := f.run(ctx, "up", "--metal", "none"); err != nil {
		return err
	}
	w, err := newAddonWorld(ctx, f)
	if err != nil {
		return err
	}
	defer w.close()
	for _, n := range addonSizes {
		if err := w.lifecycle(ctx, n/addonServers); err != nil {
			return fmt.Errorf("with %d releases: %w", n, err)
		}
	}
	return w.blackHole(ctx, addonSizes[0]/addonServers)
}

// lifecycle measures one number of proxies from nothing to nothing.
func (w *addonWorld) lifecycle(ctx context.Context, proxies int) error {
	n := proxies * addonServers
	floor, err := w.floor(ctx, n)
	if err != nil {
		return err
	}
	row(fmt.Sprintf("%d releases by a bare client", n), "%s", floor)
	memory, err := w.memory(ctx)
	if err != nil {
		return err
	}
	installed, err := w.step(ctx, n, func() error { return w.create(ctx, proxies) })
	if err != nil {
		return err
	}
	row(fmt.Sprintf("%d releases by Drover", n), "%s, %.1f times the floor", installed, installed.took.Seconds()/floor.took.Seconds())
	grown, err := w.memory(ctx)
	if err != nil {
		return err
	}
	row("· memory of the manager", "%d MiB before, %d MiB after, %d KiB per release", memory>>20, grown>>20, (grown-memory)>>10/int64(n))
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"nothing to do, twice", func() error { return w.touch(ctx) }},
		{"other values", func() error { return w.revalue(ctx) }},
		{"removed", func() error { return w.remove(ctx) }},
	} {
		got, err := w.step(ctx, n, s.do)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		row("· "+s.name, "%s", got)
	}
	return nil
}

// create makes proxies, each for all clusters, and waits until they are ready.
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

// awaitReady returns when so many proxies are ready on so many clusters each.
func (w *addonWorld) awaitReady(ctx context.Context, proxies, clusters int) error {
	return await(ctx, "add-ons to be ready", func() bool {
		ready := 0
		for _, r := range w.releases(ctx) {
			if r.Status.ObservedGeneration == r.Generation && conditions.IsTrue(&r, clusterv1.ReadyCondition) {
				ready++
			}
		}
		return ready >= proxies*clusters
	})
}

func (w *addonWorld) releases(ctx context.Context) []addonsv1.HelmReleaseProxy {
	list := &addonsv1.HelmReleaseProxyList{}
	if err := w.client.List(ctx, list); err != nil {
		return nil
	}
	return list.Items
}

// each changes every proxy.
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

// touch makes the manager look at everything, and gives it time to: the clusters are paused and set free again.
func (w *addonWorld) touch(ctx context.Context) error {
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
	n := len(w.releases(ctx))
	err := w.each(ctx, func(p *addonsv1.HelmChartProxy) { p.Spec.ValuesTemplate += "extra: yes\n" })
	if err != nil {
		return err
	}
	return await(ctx, "the second revision everywhere", func() bool {
		second := 0
		for _, r := range w.releases(ctx) {
			if r.Status.Revision == 2 && conditions.IsTrue(&r, clusterv1.ReadyCondition) {
				second++
			}
		}
		return second == n
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
	return await(ctx, "add-ons to be gone", func() bool { return len(w.releases(ctx)) == 0 })
}

// blackHole measures what two silent clusters cost the others.
func (w *addonWorld) blackHole(ctx context.Context, proxies int) error {
	const silent = 2
	n := proxies * (addonServers - silent)
	without, err := w.step(ctx, n, func() error {
		for i := range proxies {
			p := w.chart(fmt.Sprintf("addon-%03d", i))
			p.Spec.ClusterSelector.MatchLabels["silent"] = "no"
			if err := w.client.Create(ctx, p); err != nil {
				return err
			}
		}
		return w.awaitReady(ctx, proxies, addonServers-silent)
	})
	if err != nil {
		return err
	}
	if err := w.remove(ctx); err != nil {
		return err
	}
	for _, r := range w.relays[:silent] {
		r.hold()
	}
	with, err := w.step(ctx, n, func() error {
		for i := range proxies {
			if err := w.client.Create(ctx, w.chart(fmt.Sprintf("addon-%03d", i))); err != nil {
				return err
			}
		}
		return w.awaitReady(ctx, proxies, addonServers-silent)
	})
	if err != nil {
		return err
	}
	for _, r := range w.relays[:silent] {
		r.release()
	}
	row(fmt.Sprintf("%d releases, no cluster silent", n), "%s", without)
	row(fmt.Sprintf("%d releases, %d more clusters silent", n, silent), "%s, %.2f times as long", with, with.took.Seconds()/without.took.Seconds())
	began := time.Now()
	if err := w.awaitReady(ctx, proxies, addonServers); err != nil {
		return err
	}
	row("· they answer again, until all is installed", "%.1f s", time.Since(began).Seconds())
	return w.remove(ctx)
}

// memory is what the manager holds.
func (w *addonWorld) memory(ctx context.Context) (int64, error) {
	pid, err := w.manager(ctx)
	if err != nil {
		return 0, err
	}
	if err := wait(ctx, settle); err != nil {
		return 0, err
	}
	u, err := usageOf(pid)
	return u.resident, err
}

func (w *addonWorld) manager(ctx context.Context) (int, error) {
	s, err := w.bench.status(ctx)
	if err != nil {
		return 0, err
	}
	if pid := s.processes()["manager"]; pid != 0 {
		return pid, nil
	}
	return 0, os.ErrProcessDone
}
