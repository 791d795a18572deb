package users

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
)

func TestLocalMachinesAreClosedUntilOpened(t *testing.T) {
	w := newWorld(t)
	if err := w.OpenLocalMachines(t.Context(), w.ns); err == nil || !strings.Contains(err.Error(), "the management plane has none") {
		t.Errorf("opening what does not exist: %v", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: anywherev1.LocalCredentials}, StringData: map[string]string{"PACKET_API_KEY": "t"}}
	secrets := w.api.CoreV1().Secrets(anywherev1.SystemNamespace)
	_, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	w.must(err)
	if got := w.LocalMachines(t.Context(), w.ns); got != MachinesClosed {
		t.Errorf("at first they are %q", got)
	}
	for _, namespace := range []string{w.ns, "team-b", w.ns} {
		w.must(w.OpenLocalMachines(t.Context(), namespace))
	}
	for namespace, want := range map[string]Machines{w.ns: MachinesOpen, "team-c": MachinesClosed, "default": MachinesClosed} {
		if got := w.LocalMachines(t.Context(), namespace); got != want {
			t.Errorf("for %s they are %q, want %q", namespace, got, want)
		}
	}
	got, err := secrets.Get(t.Context(), secret.Name, metav1.GetOptions{})
	w.must(err)
	if list := got.Annotations[anywherev1.CredentialsNamespacesAnnotation]; list != w.ns+",team-b" || string(got.Data["PACKET_API_KEY"]) != "t" {
		t.Errorf("the Secret lists %q and has %d keys", list, len(got.Data))
	}
}

func TestInterruptedOpeningIsAnError(t *testing.T) {
	w := newWorld(t)
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := w.OpenLocalMachines(interrupted, w.ns); err == nil {
		t.Error("an opening that was interrupted is reported as done")
	}
}
