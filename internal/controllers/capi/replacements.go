package capi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/drover-dev/drover/internal/model/inplace"
)

// keepMachines returns the manager for the two reconcilers that replace machines. Upstream replaces
// a machine that it can't upgrade in place for reasons of its own, before it calls any hook:
// because the machine is unhealthy, for example. Those reconcilers delete machines through the
// manager's HTTP client, so that is where a replacement is stopped. They delete machines of deleted
// owners in another way.
func (w *wiring) keepMachines() ctrl.Manager {
	next := w.mgr.GetHTTPClient()
	guarded := *next
	guarded.Transport = &keeper{reader: w.client, next: next.Transport}
	return keepingManager{w.mgr, &guarded}
}

type keepingManager struct {
	ctrl.Manager

	http *http.Client
}

// GetHTTPClient implements ctrl.Manager.
func (m keepingManager) GetHTTPClient() *http.Client { return m.http }

// keeper denies requests that would replace a machine that is upgraded in place.
type keeper struct {
	reader client.Reader
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (k *keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	key, ok := deletedMachine(r)
	if !ok {
		return k.next.RoundTrip(r)
	}
	reason, err := k.refusal(r, key)
	if err != nil {
		return nil, err
	}
	if reason != "" {
		return denied(r, reason), nil
	}
	return k.next.RoundTrip(r)
}

// deletedMachine returns the Machine that a request deletes.
func deletedMachine(r *http.Request) (client.ObjectKey, bool) {
	if r.Method != http.MethodDelete {
		return client.ObjectKey{}, false
	}
	_, path, found := strings.Cut(r.URL.Path, "/apis/"+clusterv1.GroupVersion.Group+"/")
	parts := strings.Split(path, "/") // version, namespaces, NAMESPACE, machines, NAME
	if !found || len(parts) != 5 || parts[3] != "machines" {
		return client.ObjectKey{}, false
	}
	return client.ObjectKey{Namespace: parts[2], Name: parts[4]}, true
}

// refusal returns why a Machine must not be deleted, or "".
func (k *keeper) refusal(r *http.Request, key client.ObjectKey) (string, error) {
	m := &clusterv1.Machine{}
	if err := k.reader.Get(r.Context(), key, m); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if !inplace.Wanted(m.Annotations) || isGivenUp(m) {
		return "", nil
	}
	wanted, siblings, err := k.siblings(r, m)
	if err != nil || siblings > wanted {
		return "", err
	}
	return fmt.Sprintf("machine %s is upgraded in place and not replaced: repair it, or delete it yourself", m.Name), nil
}

// isGivenUp reports whether a user or a health check wants the machine to be replaced.
func isGivenUp(m *clusterv1.Machine) bool {
	_, deleted := m.Annotations[clusterv1.DeleteMachineAnnotation]
	_, remediated := m.Annotations[clusterv1.RemediateMachineAnnotation]
	unhealthy := meta.IsStatusConditionFalse(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	return deleted || remediated || unhealthy
}

// siblings returns how many machines the control plane or the group of a machine wants, and how
// many it has.
func (k *keeper) siblings(r *http.Request, m *clusterv1.Machine) (wanted, existing int32, err error) {
	of := client.MatchingLabels{clusterv1.ClusterNameLabel: m.Spec.ClusterName}
	if group := m.Labels[clusterv1.MachineDeploymentNameLabel]; group != "" {
		of[clusterv1.MachineDeploymentNameLabel] = group
		d := &clusterv1.MachineDeployment{}
		if err := k.reader.Get(r.Context(), client.ObjectKey{Namespace: m.Namespace, Name: group}, d); err != nil {
			return 0, 1, client.IgnoreNotFound(err)
		}
		wanted = ptr.Deref(d.Spec.Replicas, 1)
	} else {
		of[clusterv1.MachineControlPlaneLabel] = ""
		owner := metav1.GetControllerOf(m)
		if owner == nil || owner.Kind != controlPlaneKind {
			return 0, 1, nil
		}
		p := &controlplanev1.KubeadmControlPlane{}
		if err := k.reader.Get(r.Context(), client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}, p); err != nil {
			return 0, 1, client.IgnoreNotFound(err)
		}
		wanted = ptr.Deref(p.Spec.Replicas, 1)
	}
	all := &clusterv1.MachineList{}
	if err := k.reader.List(r.Context(), all, client.InNamespace(m.Namespace), of); err != nil {
		return 0, 0, fmt.Errorf("listing machines: %w", err)
	}
	for i := range all.Items {
		if all.Items[i].DeletionTimestamp.IsZero() {
			existing++
		}
	}
	return wanted, existing, nil
}

// denied returns the response of an API server that denies a request.
func denied(r *http.Request, message string) *http.Response {
	body, _ := json.Marshal(metav1.Status{ // plain data
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: message,
	})
	return &http.Response{
		Status: http.StatusText(http.StatusForbidden), StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
