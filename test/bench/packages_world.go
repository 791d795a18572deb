package main

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeclient "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	packagesv1 "github.com/drover-dev/drover/api/packages/v1alpha1"
	"github.com/drover-dev/drover/internal/test/clustertest"
	"github.com/drover-dev/drover/internal/test/kubetest"
)

const (
	packageWriters = 16
	mergePatch     = types.MergePatchType
)

// packageWorld is a plane with many clusters, each with its own PackageBundleController and relay.
// Several share an API server; their releases have different names there.
type packageWorld struct {
	*addonWorld

	herd     packageLoad
	clusters []string
	// hosts are the hosts of the relays.
	hosts map[string]bool
}

func newPackageWorld(ctx context.Context, b *bench) (*packageWorld, error) {
	w := &packageWorld{addonWorld: &addonWorld{bench: b, cleanups: &cleanups{}}, herd: b.herd, hosts: map[string]bool{}}
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
	if w.follower, err = followPackages(ctx, cfg, w.client); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{w.publish, w.startServers, w.register, w.control} {
		if err := step(ctx); err != nil {
			w.close()
			return nil, err
		}
	}
	return w, nil
}

func (w *packageWorld) startServers(ctx context.Context) error {
	w.servers = make([]*kubetest.Server, packageServers)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for i := range w.servers {
		group.Go(func() (err error) {
			w.servers[i], err = kubetest.Run(groupCtx)
			return err
		})
	}
	return group.Wait()
}

// register creates the Clusters.
func (w *packageWorld) register(ctx context.Context) error {
	for i := range w.herd.clusters {
		config, err := w.behindRelay(w.servers[i%packageServers].Config)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("bench-%03d", i)
		w.clusters = append(w.clusters, name)
		w.hosts[w.relays[i].listener.Addr().String()] = true
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
		if err := clustertest.Register(ctx, w.client, cluster, config); err != nil {
			return fmt.Errorf("registering Cluster %q: %w", name, err)
		}
	}
	return nil
}

// control creates a PackageBundleController for each cluster and waits until all have their bundle.
func (w *packageWorld) control(ctx context.Context) error {
	for _, name := range w.clusters {
		controller := &packagesv1.PackageBundleController{
			ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: name},
			Spec:       packagesv1.PackageBundleControllerSpec{ActiveBundle: bundleName(firstBuild), BundleRepository: bundleRepository},
		}
		if err := w.client.Create(ctx, controller); err != nil {
			return fmt.Errorf("creating PackageBundleController %q: %w", name, err)
		}
	}
	return await(ctx, "all clusters to have a bundle", func() bool {
		all := &packagesv1.PackageBundleControllerList{}
		err := w.client.List(ctx, all, client.InNamespace(packagesv1.Namespace))
		return err == nil && !slices.ContainsFunc(all.Items, func(c packagesv1.PackageBundleController) bool {
			return c.Status.State != packagesv1.ControllerActive && c.Status.State != packagesv1.ControllerUpgradeAvailable
		})
	})
}

// createPackages creates all packages.
func (w *packageWorld) createPackages(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(packageWriters)
	for _, cluster := range w.clusters {
		for i := range w.herd.packages {
			group.Go(func() error { return w.client.Create(groupCtx, w.pack(cluster, i)) })
		}
	}
	return group.Wait()
}

// pack returns a package of a cluster.
func (w *packageWorld) pack(cluster string, i int) *packagesv1.Package {
	return &packagesv1.Package{
		ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: fmt.Sprintf("%s-%s%02d", cluster, releasePrefix(cluster), i)},
		Spec:       packagesv1.PackageSpec{PackageName: packageName(i), TargetNamespace: corev1.NamespaceDefault},
	}
}

// releasePrefix returns the prefix of a cluster's releases.
func releasePrefix(cluster string) string { return "on-" + cluster + "-" }

// activate activates a build of the bundle on some clusters.
func (w *packageWorld) activate(ctx context.Context, build int, clusters []string) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(packageWriters)
	patch := fmt.Appendf(nil, `{"spec":{"activeBundle":%q}}`, bundleName(build))
	for _, name := range clusters {
		controller := &packagesv1.PackageBundleController{ObjectMeta: metav1.ObjectMeta{Namespace: packagesv1.Namespace, Name: name}}
		group.Go(func() error { return w.client.Patch(groupCtx, controller, client.RawPatch(mergePatch, patch)) })
	}
	return group.Wait()
}

func (w *packageWorld) serverOf(cluster string) *kubetest.Server {
	return w.servers[slices.Index(w.clusters, cluster)%packageServers]
}
