package users

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/model/spec"
)

// OpenLocalMachines lets clusters of a namespace use local machines. Whoever creates a cluster on
// them is root on machines that share the kernel of their host, and may become root on the host.
func (d *Directory) OpenLocalMachines(ctx context.Context, namespace string) error {
	secrets := d.api.CoreV1().Secrets(anywherev1.SystemNamespace)
	var err error
	// RetryOnConflict itself reports a request that was canceled or timed out as a success.
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var secret *corev1.Secret
		secret, err = secrets.Get(ctx, anywherev1.LocalCredentials, metav1.GetOptions{})
		if err != nil || !spec.AddNamespace(&secret.ObjectMeta, namespace) {
			return err
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: anywherev1.FieldManagerCLI})
		return err
	})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("opening local machines to namespace %q: the management plane has none (Secret %q not found in namespace %q)",
			namespace, anywherev1.LocalCredentials, anywherev1.SystemNamespace)
	}
	if err != nil {
		return fmt.Errorf("opening local machines to namespace %q: %w", namespace, err)
	}
	return nil
}

// Machines says whether clusters of a namespace may use local machines.
type Machines string

// Values of Machines.
const (
	// MachinesUnknown means that there are none, or that the caller may not know.
	MachinesUnknown Machines = ""
	MachinesClosed  Machines = "closed"
	MachinesOpen    Machines = "open"
)

// LocalMachines says whether creators in a namespace may use local machines.
func (d *Directory) LocalMachines(ctx context.Context, namespace string) Machines {
	secret, err := d.api.CoreV1().Secrets(anywherev1.SystemNamespace).Get(ctx, anywherev1.LocalCredentials, metav1.GetOptions{})
	switch {
	case err != nil:
		return MachinesUnknown
	case spec.ForAdministrators(secret, namespace):
		return MachinesClosed
	}
	return MachinesOpen
}
