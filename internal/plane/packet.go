package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	anywherev1 "github.com/drover-dev/drover/api/anywhere/v1alpha1"
	"github.com/drover-dev/drover/internal/metal/access"
)

// usePacketAPI is the signal that makes a supervisor search for the Packet API again.
const usePacketAPI = unix.SIGUSR1

// SkippedError explains why the plane runs without something optional.
type SkippedError struct{ Reason string }

func (e *SkippedError) Error() string { return e.Reason }

// PacketAPI is the source of machines.
type PacketAPI struct {
	access.Credentials

	// Project is the default project for machines of clusters, or "" if unknown.
	Project string
}

// findPacket starts searching for the Packet API and returns a function that waits for the result.
func (p *Plane) findPacket(ctx context.Context, find func(context.Context) (PacketAPI, error)) func(Progress) error {
	if find == nil {
		return p.forgetPacket
	}
	done := make(chan error, 1)
	go func() {
		found, err := find(ctx)
		done <- errors.Join(err, p.home.writePacket(found))
	}()
	return func(progress Progress) error {
		stage := progress.stage("metal")
		err := <-done
		var skipped *SkippedError
		switch {
		case errors.As(err, &skipped):
			stage.skipped(skipped.Reason)
		case err != nil:
			return stage.failed(err)
		default:
			stage.ok()
		}
		return nil
	}
}

// forgetPacket runs the manager without a Packet API.
func (p *Plane) forgetPacket(progress Progress) error {
	if err := p.home.writePacket(PacketAPI{}); err != nil {
		return progress.stage("metal").failed(err)
	}
	return nil
}

// shareTimeout bounds how long the API server may take to store a Secret.
const shareTimeout = 30 * time.Second

// shareMachines stores the credentials for Clusters on machines of this host. Only the manager
// reads the Secret.
func (p *Plane) shareMachines(ctx context.Context) error {
	found, err := p.home.readPacket()
	if err != nil || found.Project == "" {
		return err
	}
	client, err := kubernetes.NewForConfig(p.home.clientConfig(p.config))
	if err != nil {
		return err
	}
	secret := corev1.Secret(anywherev1.LocalCredentials, anywherev1.SystemNamespace).WithLabels(map[string]string{
		anywherev1.CredentialsLabel: "true",
	}).WithStringData(map[string]string{
		access.URLKey: found.URL, access.TokenKey: found.Token, access.CAKey: found.CA, "PROJECT_ID": found.Project,
	})
	_, err = client.CoreV1().Secrets(anywherev1.SystemNamespace).Apply(ctx, secret, metav1.ApplyOptions{FieldManager: "drover", Force: true})
	if err != nil {
		return fmt.Errorf("storing the credentials of the Packet API: %w", err)
	}
	return nil
}

// managerEnvironment is computed at each start of the manager, so that it always has the current
// credentials.
func (p *Plane) managerEnvironment() []string {
	found, err := p.home.readPacket()
	if err != nil {
		p.log.Error("Failed to read the Packet API", "error", err)
	}
	p.stateMu.Lock()
	p.packet = found
	p.stateMu.Unlock()
	env := os.Environ()
	if found.Token != "" {
		env = append(env, access.URLKey+"="+found.URL, access.TokenKey+"="+found.Token, access.CAKey+"="+found.CA)
	}
	return env
}

// renewPacket restarts the manager if its credentials are outdated.
func (p *Plane) renewPacket() {
	wanted, err := p.home.readPacket()
	p.stateMu.Lock()
	same := wanted == p.packet
	p.stateMu.Unlock()
	if err != nil || same {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), shareTimeout)
	defer cancel()
	if err := p.shareMachines(ctx); err != nil {
		p.log.Error("Failed to store the credentials of the Packet API", "error", err)
	}
	p.log.Info("Restarting the manager for another Packet API", "url", wanted.URL)
	p.child("manager").restart()
}

func (h Home) writePacket(c PacketAPI) error { return writeJSON(h.packetFile(), c) }

func (h Home) readPacket() (PacketAPI, error) {
	var c PacketAPI
	data, err := os.ReadFile(h.packetFile())
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading the Packet API of the manager: %w", err)
	}
	return c, nil
}

// UsePacketAPI makes a running plane use this API, and returns once its manager does.
func UsePacketAPI(ctx context.Context, h Home, c PacketAPI) error {
	state, err := h.readState()
	if err != nil {
		return fmt.Errorf("finding the supervisor: %w", err)
	}
	if was, err := h.readPacket(); err == nil && was == c && state.PacketAPI == c.URL {
		return nil
	}
	if err := h.writePacket(c); err != nil {
		return err
	}
	if err := state.Supervisor.Signal(usePacketAPI); err != nil {
		return fmt.Errorf("notifying the supervisor (pid %d) of the Packet API: %w", state.Supervisor.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for state.PacketAPI != c.URL || !state.component("manager").Ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("timed out waiting for the manager to use the Packet API at %s: see `drover status`", c.URL)
		case <-time.After(50 * time.Millisecond):
		}
		if state, err = ReadState(h); err != nil {
			return err
		}
	}
	return nil
}
