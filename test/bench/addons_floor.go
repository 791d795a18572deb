package main

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeclient "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/drover-dev/drover/api/addons/v1alpha1"
)

// floorNamespace is the namespace of the floor's objects on every cluster and on the plane.
const floorNamespace = "floor"

// releaseBytes is the approximate size of a release record.
const releaseBytes = 3000

// floorObjects returns the objects of benchChart, written by hand.
var floorObjects = []struct{ path, body string }{
	{"/api/v1/namespaces/floor/serviceaccounts/NAME", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"NAME"}}`},
	{"/api/v1/namespaces/floor/configmaps/NAME", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"values":"{}"}}`},
	{"/api/v1/namespaces/floor/services/NAME", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"NAME"},"spec":{"selector":{"app":"NAME"},"ports":[{"port":80}]}}`},
	{"/apis/apps/v1/namespaces/floor/deployments/NAME", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME"},"spec":{"replicas":1,
		"selector":{"matchLabels":{"app":"NAME"}},"template":{"metadata":{"labels":{"app":"NAME"}},"spec":{"containers":[{"name":"main","image":"bench"}]}}}}`},
}

// floor writes the same objects and records with a bare client of the same concurrency. The keeper
// runs before and after each release.
func (w *addonWorld) floor(ctx context.Context, releases int, keeper floorKeeper) (figures, error) {
	clients := make([]kubeclient.Interface, len(w.servers))
	for i, s := range w.servers {
		config := rest.CopyConfig(s.Config)
		config.QPS = -1
		var err error
		if clients[i], err = kubeclient.NewForConfig(config); err != nil {
			return figures{}, err
		}
	}
	return w.step(ctx, releases, func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(addonWriters)
		for i := range releases {
			name := fmt.Sprintf("%s-%d-%d", keeper.name, releases, i)
			group.Go(func() error {
				return keeper.keep(ctx, name, func() error { return writeFloor(ctx, clients[i%len(clients)], name) })
			})
		}
		return group.Wait()
	})
}

// floorKeeper does the work on the management plane for a release.
type floorKeeper struct {
	name string
	keep func(ctx context.Context, name string, write func() error) error
}

// bare does nothing on the management plane.
var bare = floorKeeper{"floor", func(_ context.Context, _ string, write func() error) error { return write() }}

// keeping creates a HelmReleaseProxy for each release and writes its status at start and end: the
// minimum for showing the state of releases in objects. The manager skips them, as they are paused.
func (w *addonWorld) keeping() floorKeeper {
	return floorKeeper{"kept", func(ctx context.Context, name string, write func() error) error {
		p := w.chart(name).Spec
		r := &addonsv1.HelmReleaseProxy{
			ObjectMeta: metav1.ObjectMeta{Namespace: floorNamespace, Name: name, Annotations: map[string]string{clusterv1.PausedAnnotation: ""}},
			Spec: addonsv1.HelmReleaseProxySpec{
				ClusterRef: corev1.ObjectReference{Name: "bench"}, ChartName: p.ChartName, RepoURL: p.RepoURL, Version: p.Version,
				ReleaseName: name, ReleaseNamespace: p.ReleaseNamespace, Values: p.ValuesTemplate, TLSConfig: p.TLSConfig,
			},
		}
		if err := w.client.Create(ctx, r); err != nil {
			return err
		}
		if err := w.keep(ctx, r, metav1.ConditionFalse); err != nil {
			return err
		}
		if err := write(); err != nil {
			return err
		}
		return w.keep(ctx, r, metav1.ConditionTrue)
	}}
}

func (w *addonWorld) keep(ctx context.Context, r *addonsv1.HelmReleaseProxy, ready metav1.ConditionStatus) error {
	before := r.DeepCopy()
	for _, name := range []string{clusterv1.ReadyCondition, addonsv1.ClusterAvailable, addonsv1.ReleaseReady} {
		conditions.Set(r, metav1.Condition{Type: name, Status: ready, Reason: addonsv1.ReadyReason})
	}
	return w.client.Status().Patch(ctx, r, client.MergeFrom(before))
}

// dropKept deletes the objects of keeping.
func (w *addonWorld) dropKept(ctx context.Context) error {
	return w.client.DeleteAllOf(ctx, &addonsv1.HelmReleaseProxy{}, client.InNamespace(floorNamespace))
}

func writeFloor(ctx context.Context, c kubeclient.Interface, name string) error {
	record := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "record." + name, Labels: map[string]string{"state": "pending"}},
		Data:       map[string][]byte{"release": []byte(strings.Repeat("x", releaseBytes))},
	}
	record, err := c.CoreV1().Secrets(floorNamespace).Create(ctx, record, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, o := range floorObjects {
		err := c.Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(strings.ReplaceAll(o.path, "NAME", name)).
			Param("fieldManager", "floor").Body([]byte(strings.ReplaceAll(o.body, "NAME", name))).Do(ctx).Error()
		if err != nil {
			return err
		}
	}
	record.Labels["state"] = "deployed"
	_, err = c.CoreV1().Secrets(floorNamespace).Update(ctx, record, metav1.UpdateOptions{})
	return err
}
