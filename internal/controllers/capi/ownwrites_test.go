package capi

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capicontroller "sigs.k8s.io/cluster-api/util/controller"
)

// behind is how much later the manager hears of changes than they are made.
const behind = 200 * time.Millisecond

// slowWatches has all that a watch tells be read late.
func slowWatches(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Has("watch") {
			resp.Body = slowBody{resp.Body}
		}
		return resp, err
	})
}

type slowBody struct{ io.ReadCloser }

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(behind)
	return n, err
}

func TestWhoHasWrittenReadsWhatWasWritten(t *testing.T) {
	f := setupBehind(t, slowWatches)
	c := f.wiring.client
	machine := &clusterv1.Machine{ObjectMeta: f.meta("first"), Spec: clusterv1.MachineSpec{
		ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("x")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "Thing", Name: "x"},
	}}
	machine.Finalizers = []string{clusterv1.MachineFinalizer}
	await(t, c, &clusterv1.Machine{ObjectMeta: f.cached(t, machine.DeepCopy(), "before")})

	read := func() *clusterv1.Machine {
		t.Helper()
		got := &clusterv1.Machine{}
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(machine), got))
		return got
	}
	must(t, c.Create(t.Context(), machine))
	read()

	applied := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": f.namespace, "name": "first", "annotations": map[string]any{"applied": "yes"},
	}}}
	applied.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	must(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("test")))
	got := read()
	if got.Annotations["applied"] != "yes" {
		t.Errorf("after it was applied, the cache has %v", got.Annotations)
	}

	before := got.DeepCopy()
	got.Status.Phase = "Running"
	must(t, c.Status().Patch(t.Context(), got, client.MergeFrom(before)))
	if phase := read().Status.Phase; phase != "Running" {
		t.Errorf("after the status was written, the cache has phase %q", phase)
	}

	// Upstream deletes with a client of its own.
	deleter, err := capicontroller.NewClientWithDeleteResponse(machine, schema.GroupResource{Group: clusterv1.GroupVersion.Group, Resource: "machines"},
		f.wiring.mgr.GetScheme(), f.wiring.mgr.GetConfig(), f.wiring.mgr.GetHTTPClient())
	must(t, err)
	_, err = deleter.Delete(t.Context(), machine)
	must(t, err)
	got = read()
	if got.DeletionTimestamp.IsZero() {
		t.Error("after it was deleted, the cache has it alive")
	}

	got.Finalizers = nil
	must(t, c.Update(t.Context(), got))
	other := &clusterv1.Machine{ObjectMeta: f.meta("second"), Spec: machine.Spec}
	must(t, c.Create(t.Context(), other))
	must(t, c.Delete(t.Context(), other))
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); !apierrors.IsNotFound(err) {
		t.Errorf("after it is gone, the cache has it: %v", err)
	}
}

// cached makes an object that is in no cache yet, by way of nobody.
func (f *fixture) cached(t *testing.T, like *clusterv1.Machine, name string) metav1.ObjectMeta {
	t.Helper()
	like.ObjectMeta = f.meta(name)
	f.create(t, like)
	return f.meta(name)
}

func TestAWriteThatIsNeverSeenHoldsNobodyUpForLong(t *testing.T) {
	w := write{key: "ns/gone", version: "7"}
	informer := &neverSees{SharedIndexInformer: toolscache.NewSharedIndexInformer(nil, &clusterv1.Machine{}, 0, nil)}
	began := time.Now()
	w.await(t.Context(), []toolscache.SharedIndexInformer{informer})
	if took := time.Since(began); took < cachePatience || took > 20*cachePatience {
		t.Errorf("it waited for %s", took)
	}
	informer.stopped = true
	began = time.Now()
	w.await(t.Context(), []toolscache.SharedIndexInformer{informer})
	if took := time.Since(began); took >= cachePatience {
		t.Errorf("for an informer that has ended it waited for %s", took)
	}
}

// neverSees is an informer that nobody tells anything.
type neverSees struct {
	toolscache.SharedIndexInformer

	stopped bool
}

func (*neverSees) HasSynced() bool   { return true }
func (n *neverSees) IsStopped() bool { return n.stopped }

func TestOnlyWritesToObjectsOfClusterAPIAreWaitedFor(t *testing.T) {
	for request, want := range map[string]string{
		"POST /apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines":                              "machines.cluster.x-k8s.io n/",
		"PATCH /apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m/status":                    "machines.cluster.x-k8s.io n/m",
		"PUT /prefix/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/n/packetmachines/m": "packetmachines.infrastructure.cluster.x-k8s.io n/m",
		"DELETE /apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/n/kubeadmcontrolplanes/k": "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io n/k",
		"GET /apis/cluster.x-k8s.io/v1beta2/namespaces/n/machines/m":                             "",
		"PATCH /apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/n/helmchartproxies/h":           "",
		"PUT /apis/coordination.k8s.io/v1/namespaces/n/leases/l":                                 "",
		"POST /api/v1/namespaces/n/secrets":                                                      "",
		"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":                                "",
	} {
		method, path, _ := strings.Cut(request, " ")
		at, ok := target(&http.Request{Method: method, URL: &url.URL{Path: path}})
		got := ""
		if ok {
			got = at.resource.String() + " " + at.namespace + "/" + at.name
		}
		if got != want {
			t.Errorf("%s is about %q, want %q", request, got, want)
		}
	}
}

func TestAnswersThatAreNoObjectAreNotWaitedFor(t *testing.T) {
	at := place{namespace: "n"}
	for _, body := range []string{"", "{", `[]`, `{"kind":"MachineList","metadata":{"resourceVersion":"5"}}`, `{"kind":"Status"}`} {
		if w, ok := at.written([]byte(body)); ok {
			t.Errorf("%q is taken for %+v", body, w)
		}
	}
}
