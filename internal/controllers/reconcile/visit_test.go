package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const finalizer = "drover.dev/test"

// newClient serves one Machine and counts writes.
func newClient(t *testing.T, writes *int, failing error) (client.Client, client.ObjectKey) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Annotations: map[string]string{"a": "1"}},
		Status:     clusterv1.MachineStatus{Phase: "Pending", NodeRef: clusterv1.MachineNodeReference{Name: "n"}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine).WithStatusSubresource(machine).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			*writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			*writes++
			if failing != nil {
				return failing
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	return c, client.ObjectKeyFromObject(machine)
}

func open(t *testing.T, o Opening[*clusterv1.Machine], key client.ObjectKey) *Visit[*clusterv1.Machine] {
	t.Helper()
	v, err := o.Open(t.Context(), key, &clusterv1.Machine{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCloseWritesOnlyWhatChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*clusterv1.Machine)
		writes int
	}{
		"nothing":             {func(*clusterv1.Machine) {}, 0},
		"an annotation":       {func(m *clusterv1.Machine) { m.Annotations["a"] = "2" }, 1},
		"a removed label":     {func(m *clusterv1.Machine) { m.Annotations = nil }, 1},
		"a status":            {func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, 1},
		"a removed field":     {func(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }, 1},
		"metadata and status": {func(m *clusterv1.Machine) { m.Annotations["a"] = "2"; m.Status.Phase = "" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			c, key := newClient(t, &writes, nil)
			v := open(t, Opening[*clusterv1.Machine]{Client: c}, key)
			tc.change(v.Object)
			want := v.Object.DeepCopy()
			if r, err := v.Close(t.Context(), nil, time.Minute); err != nil || r.RequeueAfter != time.Minute {
				t.Fatalf("got %v, %v", r, err)
			}
			got := &clusterv1.Machine{}
			if err := c.Get(t.Context(), key, got); err != nil {
				t.Fatal(err)
			}
			want.ResourceVersion = got.ResourceVersion
			if diff := cmp.Diff(want, got); diff != "" || writes != tc.writes {
				t.Errorf("%d writes, want %d; stored object differs: %s", writes, tc.writes, diff)
			}
		})
	}
}

func TestOpenSkipsAndForgets(t *testing.T) {
	writes := 0
	c, key := newClient(t, &writes, nil)
	skipping := Opening[*clusterv1.Machine]{Client: c, Skip: func(context.Context, *clusterv1.Machine) (bool, error) { return true, nil }, Finalizer: finalizer}
	if v := open(t, skipping, key); v != nil || writes != 0 {
		t.Errorf("a skipped object was visited: %v, %d writes", v, writes)
	}
	var forgotten client.ObjectKey
	forgetting := Opening[*clusterv1.Machine]{Client: c, Forget: func(k client.ObjectKey) { forgotten = k }}
	gone := client.ObjectKey{Namespace: "ns", Name: "gone"}
	if v := open(t, forgetting, gone); v != nil || forgotten != gone {
		t.Errorf("got %v, forgotten is %v", v, forgotten)
	}
}

func TestFinalizerIsWrittenBeforeTheFirstStep(t *testing.T) {
	writes := 0
	c, key := newClient(t, &writes, nil)
	open(t, Opening[*clusterv1.Machine]{Client: c, Finalizer: finalizer}, key)
	stored := &clusterv1.Machine{}
	if err := c.Get(t.Context(), key, stored); err != nil || len(stored.Finalizers) != 1 {
		t.Fatalf("stored finalizers: %v, %v", stored.Finalizers, err)
	}
	if err := c.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	v := open(t, Opening[*clusterv1.Machine]{Client: c, Finalizer: finalizer}, key)
	v.Object.Finalizers = nil
	v.Object.Status.Phase = "Deleted"
	if !v.Released(finalizer) {
		t.Error("the object counts as held")
	}
	if _, err := v.Close(t.Context(), nil, 0); err != nil {
		t.Errorf("closing a deleted object: got error %v", err)
	}
}

func TestSaveConflictsWithAnotherWriter(t *testing.T) {
	writes := 0
	c, key := newClient(t, &writes, nil)
	v := open(t, Opening[*clusterv1.Machine]{Client: c}, key)
	other := v.Object.DeepCopy()
	other.Annotations["other"] = "writer"
	if err := c.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	v.Object.Status.Phase = "Running"
	if err := v.Save(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if r, err := v.Close(t.Context(), &Wait{After: time.Hour}, 0); err != nil || r.RequeueAfter != ConflictRetry {
		t.Errorf("closing after a conflict: %v, %v", r, err)
	}
}

func TestCloseReportsAWriteThatFailed(t *testing.T) {
	writes := 0
	c, key := newClient(t, &writes, errBroken)
	for _, outcome := range []error{nil, Stop, &Wait{After: time.Hour}, &Terminal{}, errors.New("step failed")} {
		v := open(t, Opening[*clusterv1.Machine]{Client: c}, key)
		v.Object.Status.Phase = string(corev1.PodRunning)
		if _, err := v.Close(t.Context(), outcome, 0); !errors.Is(err, errBroken) {
			t.Errorf("after outcome %v: %v", outcome, err)
		}
	}
}
