package bootstrap

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/config"
	"github.com/drover-dev/drover/internal/metal/access"
)

// fakeReader serves Clusters, Pods and nodes from memory.
type fakeReader struct {
	client.WithWatch

	clusters []clusterv1.Cluster
	pods     []corev1.Pod
	nodes    int
	err      error
}

func (f *fakeReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *clusterv1.ClusterList:
		l.Items = f.clusters
	case *corev1.PodList:
		l.Items = f.pods
	case *metav1.PartialObjectMetadataList:
		l.Items = make([]metav1.PartialObjectMetadata, f.nodes)
	}
	return f.err
}

func (f *fakeReader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	for i := range f.clusters {
		if client.ObjectKeyFromObject(&f.clusters[i]) == key {
			f.clusters[i].DeepCopyInto(obj.(*clusterv1.Cluster))
			return nil
		}
	}
	return errors.Join(f.err, errNoCluster)
}

var errNoCluster = errors.New("no such cluster")

func capiCluster(namespace, name string, edit ...func(*clusterv1.Cluster)) clusterv1.Cluster {
	c := clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, e := range edit {
		e(&c)
	}
	return c
}

func TestFindClusterPrefersTheSystemNamespace(t *testing.T) {
	tests := map[string]struct {
		clusters []clusterv1.Cluster
		want     string
		err      string
	}{
		"none":                      {[]clusterv1.Cluster{capiCluster("team", "b")}, "", ""},
		"the only one":              {[]clusterv1.Cluster{capiCluster("team", "a")}, "team/a", ""},
		"one in the namespace":      {[]clusterv1.Cluster{capiCluster("team", "a"), capiCluster(SystemNamespace, "a")}, SystemNamespace + "/a", ""},
		"in the other order":        {[]clusterv1.Cluster{capiCluster(SystemNamespace, "a"), capiCluster("team", "a")}, SystemNamespace + "/a", ""},
		"two, neither in it":        {[]clusterv1.Cluster{capiCluster("team", "a"), capiCluster("other", "a")}, "", `"team" and "other"`},
		"others don't matter":       {[]clusterv1.Cluster{capiCluster("team", "b"), capiCluster("team", "a"), capiCluster("other", "b")}, "team/a", ""},
		"no namespace is preferred": {nil, "", ""},
	}
	for name, tt := range tests {
		key, found, err := findCluster(t.Context(), &fakeReader{clusters: tt.clusters}, "a")
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: error %v, want %q", name, err, tt.err)
		}
		if found != (tt.want != "") || found && key.String() != tt.want {
			t.Errorf("%s: found %v at %s, want %q", name, found, key, tt.want)
		}
	}
	if _, _, err := findCluster(t.Context(), &fakeReader{err: errors.New("down")}, "a"); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("an API server that is down: %v", err)
	}
}

func TestUnfinishedMoveIsFoundByItsAnnotation(t *testing.T) {
	annotated := func(name string) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) { annotate(c, PausedForMove, name) }
	}
	for name, tt := range map[string]struct {
		cluster clusterv1.Cluster
		found   bool
	}{
		"it has arrived and is paused":  {capiCluster("team", "a", annotated("a")), true},
		"it has arrived and is resumed": {capiCluster("team", "a"), false},
		"it was paused for another":     {capiCluster("team", "a", annotated("b")), false},
	} {
		_, found, err := findUnfinished(t.Context(), &fakeReader{clusters: []clusterv1.Cluster{tt.cluster}}, "a")
		if err != nil || found != tt.found {
			t.Errorf("%s: found %v, %v", name, found, err)
		}
	}
}

func TestClusterBeingDeletedIsRejectedUnlessAMoveDeletesIt(t *testing.T) {
	deleted := func(c *clusterv1.Cluster) { c.DeletionTimestamp = ptr.To(metav1.Now()) }
	moving := func(c *clusterv1.Cluster) { annotate(c, PausedForMove, "a") }
	for name, tt := range map[string]struct {
		cluster  clusterv1.Cluster
		rejected bool
	}{
		"it lives":                   {capiCluster("team", "a"), false},
		"it is being deleted":        {capiCluster("team", "a", deleted), true},
		"an earlier move deletes it": {capiCluster("team", "a", deleted, moving), false},
	} {
		err := rejectDeleted(t.Context(), &fakeReader{clusters: []clusterv1.Cluster{tt.cluster}}, types.NamespacedName{Namespace: "team", Name: "a"})
		if (err != nil) != tt.rejected {
			t.Errorf("%s: got error %v, want an error: %t", name, err, tt.rejected)
		}
	}
}

func TestReplicasDependOnTheNodes(t *testing.T) {
	for nodes, want := range map[int]int32{0: 1, 1: 1, 2: 2, 9: 2} {
		if got, err := replicasFor(t.Context(), &fakeReader{nodes: nodes}); err != nil || got != want {
			t.Errorf("%d nodes: got %d replicas and error %v, want %d replicas", nodes, got, err, want)
		}
	}
	if _, err := replicasFor(t.Context(), &fakeReader{err: errors.New("down")}); err == nil {
		t.Error("an API server that is down is no error")
	}
}

func TestSecretsOfTheManager(t *testing.T) {
	metal := &Metal{Credentials: access.Credentials{URL: "https://metal", Token: "t"}, Project: "p"}
	for name, tt := range map[string]struct {
		options Options
		want    []string
		err     bool
	}{
		"machines elsewhere":   {Options{}, nil, false},
		"machines on the host": {Options{Metal: metal}, []string{SystemNamespace + "/" + MetalSecret, config.Namespace + "/" + config.CredentialsSecret}, false},
		"a key that is gone":   {Options{BundleKey: "/no/such/key"}, nil, true},
	} {
		all, err := tt.options.secrets()
		if (err != nil) != tt.err {
			t.Errorf("%s: got error %v, want an error: %t", name, err, tt.err)
		}
		var got []string
		for _, s := range all {
			got = append(got, s.Namespace+"/"+s.Name)
			if string(s.Data[access.TokenKey]) != "t" || s.Labels[anywherev1.CredentialsLabel] != "true" {
				t.Errorf("%s: Secret %s lacks the credentials or their label", name, s.Name)
			}
		}
		if strings.Join(got, " ") != strings.Join(tt.want, " ") {
			t.Errorf("%s: Secrets %v, want %v", name, got, tt.want)
		}
		if len(all) > 0 {
			if _, moves := all[0].Labels[clusterctlv1.ClusterctlMoveLabel]; !moves {
				t.Errorf("%s: clusterctl does not move %s", name, all[0].Name)
			}
		}
	}
}

func TestManagerIsReadyOnceAllReplicasAreUpdated(t *testing.T) {
	status := func(generation int64, updated, available, all int32) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{ObservedGeneration: generation, UpdatedReplicas: updated, AvailableReplicas: available, Replicas: all}
	}
	waiting := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "manager-x"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImageNeverPull"}}},
	}}}
	for name, tt := range map[string]struct {
		status appsv1.DeploymentStatus
		pods   []corev1.Pod
		done   bool
		report string
	}{
		"ready":               {status(2, 2, 2, 2), nil, true, ""},
		"an old generation":   {status(1, 2, 2, 2), nil, false, "2 of 2 managers ready"},
		"one is starting":     {status(2, 2, 1, 2), nil, false, "1 of 2 managers ready"},
		"an old one is left":  {status(2, 2, 2, 3), nil, false, "2 of 2 managers ready"},
		"a Pod can't start":   {status(2, 2, 0, 2), []corev1.Pod{waiting}, false, "0 of 2 managers ready, Pod manager-x: ErrImageNeverPull"},
		"none is updated yet": {status(2, 0, 2, 2), nil, false, "0 of 2 managers ready"},
	} {
		var reported string
		w := &waiter{client: &fakeReader{pods: tt.pods}, progress: func(s string) { reported = s }}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: managerKey.Namespace, Name: managerKey.Name, Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}, Status: tt.status}
		if done := w.done(t.Context(), d); done != tt.done || reported != tt.report {
			t.Errorf("%s: done %v, reported %q; want %v, %q", name, done, reported, tt.done, tt.report)
		}
	}
}

func TestReportsAreNotRepeated(t *testing.T) {
	var got []string
	w := &waiter{progress: func(s string) { got = append(got, s) }}
	for _, n := range []int{0, 0, 1, 1, 0} {
		w.report("%d of 2 managers ready", n)
	}
	if len(got) != 3 {
		t.Errorf("reported %q, want three changes", got)
	}
	(&waiter{}).report("nobody listens")
}

func TestPatchThatOnlyPausesIsRecognized(t *testing.T) {
	capi := &clusterv1.Cluster{}
	capi.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
	other := &clusterv1.Machine{}
	other.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	merge := func(data string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(data)) }
	for name, tt := range map[string]struct {
		object client.Object
		patch  client.Patch
		want   bool
	}{
		"pausing":            {capi, merge(`{"spec":{"paused":true}}`), true},
		"resuming":           {capi, merge(`{"spec":{"paused":null}}`), true},
		"another field":      {capi, merge(`{"spec":{"topology":{}}}`), false},
		"one field more":     {capi, merge(`{"spec":{"paused":true,"topology":{}}}`), false},
		"metadata as well":   {capi, merge(`{"spec":{"paused":true},"metadata":{}}`), false},
		"another kind":       {other, merge(`{"spec":{"paused":true}}`), false},
		"another patch type": {capi, client.RawPatch(types.JSONPatchType, []byte(`[]`)), false},
		"not JSON":           {capi, merge(`{`), false},
	} {
		if got, err := onlyPauses(tt.object, tt.patch); err != nil || got != tt.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
		}
	}
}

func TestPausingIsUndoneCompletely(t *testing.T) {
	byField := capiCluster("team", "a")
	annotated := &anywherev1.Cluster{}
	for name, p := range map[string]pausable{
		"a field":       pausableCluster(&byField),
		"an annotation": byAnnotation(annotated, anywherev1.PausedAnnotation, "true"),
	} {
		if p.paused {
			t.Errorf("%s: paused from the start", name)
		}
		p.set()
		if !ptr.Deref(byField.Spec.Paused, false) && annotated.Annotations[anywherev1.PausedAnnotation] == "" {
			t.Errorf("%s: not paused", name)
		}
		p.unset()
		if byField.Spec.Paused != nil || len(annotated.Annotations) > 0 {
			t.Errorf("%s: the paused annotations still exist, want them removed", name)
		}
	}
	if p := byAnnotation(&anywherev1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.PausedAnnotation: ""}}}, clusterv1.PausedAnnotation, ""); !p.paused {
		t.Error("an annotation without a value does not count as paused")
	}
}
