package admission

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/demand"
)

// fakeCapacity has a number of machines, and keeps the last question.
type fakeCapacity struct {
	free        int
	err         error
	asked       []demand.Machines
	credentials string
	isNew       bool
}

func (f *fakeCapacity) Check(_ context.Context, credentials string, machines []demand.Machines, isNew bool) ([]demand.Machines, error) {
	f.asked, f.credentials, f.isNew = machines, credentials, isNew
	if demand.Count(machines) > f.free {
		return machines, f.err
	}
	return nil, f.err
}

// dryRun is the context of a dry run of the creator.
func (w *world) dryRun() context.Context {
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: creator(), DryRun: ptr.To(true)}}
	return admission.NewContextWithRequest(w.Context(), request)
}

// openLocalMachines creates the credentials for local machines, and others that are not for
// machines.
func (w *world) openLocalMachines() {
	w.Helper()
	for name, annotations := range map[string]map[string]string{
		anywherev1.LocalCredentials:    {anywherev1.CredentialsNamespacesAnnotation: anywherev1.AllNamespaces},
		anywherev1.RegistryCredentials: nil,
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: anywherev1.SystemNamespace, Name: name, Annotations: annotations}}
		w.must(w.Create(w.Context(), secret))
		w.Cleanup(func() { w.must(w.Delete(context.WithoutCancel(w.Context()), secret)) })
	}
}

func TestMissingMachinesAreWarnedOf(t *testing.T) {
	w := newWorld(t)
	w.openLocalMachines()
	capacity := &fakeCapacity{free: 1}
	w.Capacity = capacity
	c := w.workload("two")
	warnings, err := w.ValidateCreate(w.as(creator()), c)
	if err != nil || !slices.Equal(warnings, admission.Warnings{"not enough machines: 2 of plan local.small in da"}) {
		t.Errorf("creating before the DockerDatacenterConfig exists: %v, %v", warnings, err)
	}
	w.must(w.Create(t.Context(), &anywherev1.DockerDatacenterConfig{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "two"}}))
	warnings, err = w.ValidateCreate(w.as(creator()), c)
	if err != nil || !slices.Equal(warnings, admission.Warnings{"not enough machines: 2 of plan local.small in da"}) || !capacity.isNew {
		t.Errorf("creating: %v, %v", warnings, err)
	}
	more := c.DeepCopy()
	more.Spec.WorkerNodeGroupConfigurations[0].Count = ptr.To(3)
	warnings, err = w.ValidateUpdate(w.as(creator()), c, more)
	if err != nil || !slices.Equal(warnings, admission.Warnings{"not enough machines: 2 of plan local.small in da"}) || capacity.isNew {
		t.Errorf("scaling: %v, %v", warnings, err)
	}
	capacity.asked = nil
	annotated := c.DeepCopy()
	annotated.Annotations = map[string]string{"a": "b"}
	if warnings, err := w.ValidateUpdate(w.as(creator()), c, annotated); err != nil || warnings != nil || capacity.asked != nil {
		t.Errorf("an update that needs no machines: %v, %v, asked for %v", warnings, err, capacity.asked)
	}
	capacity.err = errors.New("down")
	if warnings, err := w.ValidateCreate(w.as(creator()), c); err != nil || warnings != nil {
		t.Errorf("without an answer: %v, %v", warnings, err)
	}
}

// TestCommandsAskForMachinesInDryRuns asks for machines of objects that don't exist.
func TestCommandsAskForMachinesInDryRuns(t *testing.T) {
	w := newWorld(t)
	w.openLocalMachines()
	capacity := &fakeCapacity{free: 1}
	w.Capacity = capacity
	ask := func(ctx context.Context, check demand.Check) admission.Warnings {
		t.Helper()
		text, err := json.Marshal(check)
		w.must(err)
		c := w.workload("asking")
		c.Annotations = map[string]string{anywherev1.CapacityCheckAnnotation: string(text)}
		capacity.asked = nil
		warnings, err := w.ValidateCreate(ctx, c)
		w.must(err)
		return warnings
	}
	large := []demand.Machines{{Plan: "m3.large.x86", Metro: "am", Count: 3}}
	if got := ask(w.dryRun(), demand.Check{Credentials: anywherev1.LocalCredentials, Machines: large}); !slices.Equal(got, admission.Warnings{"not enough machines: 3 of plan m3.large.x86 in am"}) {
		t.Errorf("a question in a dry run: %v", got)
	}
	for name, check := range map[string]demand.Check{
		"of others":   {Credentials: anywherev1.RegistryCredentials, Machines: large},
		"that is odd": {Credentials: anywherev1.LocalCredentials, Machines: []demand.Machines{{Plan: "a", Count: -1}}},
	} {
		if got := ask(w.dryRun(), check); got != nil || capacity.asked != nil {
			t.Errorf("a question %s: %v, asked for %v", name, got, capacity.asked)
		}
	}
	capacity.free = 2 // enough for the cluster itself
	if got := ask(w.as(creator()), demand.Check{Credentials: anywherev1.LocalCredentials, Machines: large}); got != nil {
		t.Errorf("a question outside of a dry run: %v", got)
	}
	c := w.workload("kept")
	c.Annotations = map[string]string{anywherev1.CapacityCheckAnnotation: "{}"}
	w.must(w.Default(w.as(creator()), c))
	if _, kept := c.Annotations[anywherev1.CapacityCheckAnnotation]; kept {
		t.Error("a question is stored")
	}
	w.must(w.Default(w.dryRun(), c))
}
