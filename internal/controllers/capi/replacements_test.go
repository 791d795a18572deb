package capi

import (
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/model/inplace"
)

type answerFunc func(*http.Request) (*http.Response, error)

func (f answerFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestMachinesThatAreUpgradedInPlaceAreNotReplaced deletes machine m of three.
func TestMachinesThatAreUpgradedInPlaceAreNotReplaced(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, AddToScheme(scheme))
	type change func(m *clusterv1.Machine, p *controlplanev1.KubeadmControlPlane, d *clusterv1.MachineDeployment)
	worker := func(m *clusterv1.Machine, _ *controlplanev1.KubeadmControlPlane, _ *clusterv1.MachineDeployment) {
		delete(m.Labels, clusterv1.MachineControlPlaneLabel)
		m.Labels[clusterv1.MachineDeploymentNameLabel] = "d"
	}
	for name, tt := range map[string]struct {
		changes []change
		deleted bool
	}{
		"a rollout of a control plane is stopped": {nil, false},
		"a rollout of workers is stopped":         {[]change{worker}, false},
		"other machines are replaced": {[]change{func(m *clusterv1.Machine, _ *controlplanev1.KubeadmControlPlane, _ *clusterv1.MachineDeployment) {
			delete(m.Annotations, inplace.Annotation)
		}}, true},
		"a smaller control plane": {[]change{func(_ *clusterv1.Machine, p *controlplanev1.KubeadmControlPlane, _ *clusterv1.MachineDeployment) {
			p.Spec.Replicas = ptr.To(int32(1))
		}}, true},
		"fewer workers": {[]change{worker, func(_ *clusterv1.Machine, _ *controlplanev1.KubeadmControlPlane, d *clusterv1.MachineDeployment) {
			d.Spec.Replicas = ptr.To(int32(1))
		}}, true},
		"a machine that failed its health check": {[]change{func(m *clusterv1.Machine, _ *controlplanev1.KubeadmControlPlane, _ *clusterv1.MachineDeployment) {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse}}
		}}, true},
		"a machine that a user marked": {[]change{func(m *clusterv1.Machine, _ *controlplanev1.KubeadmControlPlane, _ *clusterv1.MachineDeployment) {
			m.Annotations[clusterv1.DeleteMachineAnnotation] = ""
		}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: controlplanev1.KubeadmControlPlaneSpec{Replicas: ptr.To(int32(3))}}
			d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}, Spec: clusterv1.MachineDeploymentSpec{Replicas: ptr.To(int32(3))}}
			objects := []client.Object{p, d}
			for _, machine := range []string{"m", "n", "o"} {
				m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: machine, Annotations: map[string]string{inplace.Annotation: inplace.Strategy},
					Labels:          map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: controlplanev1.GroupVersion.String(), Kind: controlPlaneKind, Name: "p", Controller: ptr.To(true)}},
				}, Spec: clusterv1.MachineSpec{ClusterName: "c"}}
				for _, c := range tt.changes {
					c(m, p, d)
				}
				objects = append(objects, m)
			}
			reached := false
			k := &keeper{
				reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&clusterv1.Machine{}).Build(),
				next: answerFunc(func(*http.Request) (*http.Response, error) {
					reached = true
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
				}),
			}
			if tt.deleted && strings.Contains(name, "health") {
				m := &clusterv1.Machine{}
				must(t, k.reader.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m"}, m))
				m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse, Reason: "x", LastTransitionTime: metav1.Now()}}
				must(t, k.reader.(client.Client).Status().Update(t.Context(), m))
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "https://server/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/m", nil)
			must(t, err)
			response, err := k.RoundTrip(r)
			must(t, err)
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			must(t, err)
			if reached != tt.deleted {
				t.Errorf("deleted: %t, want %t: %s", reached, tt.deleted, body)
			}
			if !reached && (response.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "upgraded in place and not replaced")) {
				t.Errorf("got %d %s", response.StatusCode, body)
			}
		})
	}
}

func TestOtherRequestsPassTheKeeper(t *testing.T) {
	for path, method := range map[string]string{
		"/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/m":        http.MethodPatch,
		"/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machinesets/m":     http.MethodDelete,
		"/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines":          http.MethodDelete,
		"/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/m/status": http.MethodDelete,
		"/api/v1/namespaces/ns/pods/m":                                   http.MethodDelete,
	} {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://server"+path, nil)
		must(t, err)
		if key, is := deletedMachine(r); is {
			t.Errorf("%s %s deletes machine %s", method, path, key)
		}
	}
}
