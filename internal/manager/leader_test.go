package manager_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/config"
)

// quick makes leadership change within seconds.
var quick = []string{
	"--install=false", "--leader-elect",
	"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=200ms",
}

func TestOneManagerLeadsAndAnotherTakesOver(t *testing.T) {
	server, _ := ready(t)
	c := server.Clientset(t)
	first := launch(t, server.Kubeconfig(t), quick...)
	first.awaitReady(t)
	leader := awaitLeader(t, c, "")

	second := launch(t, server.Kubeconfig(t), quick...)
	second.awaitReady(t)
	if now := awaitLeader(t, c, ""); now != leader {
		t.Fatalf("%s became leader while %s is running", now, leader)
	}
	for _, line := range linesWith(second.Log(), "starting workers") {
		if !strings.Contains(line, "webhookcert") {
			t.Errorf("standby runs more than the certificates: %s", line)
		}
	}

	first.Kill()
	next := awaitLeader(t, c, leader)
	eventually(t, func() error {
		if n := len(linesWith(second.Log(), "starting workers")); n < 15 {
			return fmt.Errorf("%s leads and runs %d controllers", next, n)
		}
		return nil
	})
}

func TestStoppedManagerReleasesTheLease(t *testing.T) {
	server, _ := ready(t)
	m := launch(t, server.Kubeconfig(t), quick...)
	eventually(t, func() error {
		if len(linesWith(m.Log(), "successfully acquired lease")) == 0 {
			return errors.New("not leading yet")
		}
		return nil
	})
	m.Stop(t)
	if code := m.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	lease, err := server.Clientset(t).CoordinationV1().Leases(config.Namespace).Get(t.Context(), "drover-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("lease is still held by %s", *holder)
	}
}

// awaitLeader waits for a holder of the lease other than former.
func awaitLeader(t *testing.T, c kubernetes.Interface, former string) string {
	t.Helper()
	var holder string
	eventually(t, func() error {
		lease, err := c.CoordinationV1().Leases(config.Namespace).Get(t.Context(), "drover-manager", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || *lease.Spec.HolderIdentity == former {
			return fmt.Errorf("no new leader after %q", former)
		}
		holder = *lease.Spec.HolderIdentity
		return nil
	})
	return holder
}
