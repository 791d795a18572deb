package local

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// TestAdoptedMachineReportsFirst restarts the driver after a kubelet has started while no metal
// ran. The report must arrive before the driver is ready: metal serves userdata from then on.
func TestAdoptedMachineReportsFirst(t *testing.T) {
	d := newLAN(t).Driver
	reports := &sink{events: map[string][]driver.Event{}, change: make(chan struct{})}
	d.home, d.sink, d.log, d.machines = t.TempDir(), reports, slog.New(slog.DiscardHandler), map[string]*machine{}
	d.ctx, d.cancel = context.WithCancel(t.Context())
	defer d.wg.Wait()
	defer d.cancel()

	cmd := exec.CommandContext(t.Context(), "sleep", "600") // stands for the first process
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	first, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(d.machinesDir(), "x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]any{
		guest.SpecFile: guest.Spec{ID: "x"}, stateFile: first, guest.EventsFile: guest.Event{Type: driver.UserdataClosed},
	} {
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.adopt(); err != nil {
		t.Fatal(err)
	}
	reports.mu.Lock()
	defer reports.mu.Unlock()
	if got := reports.events["x"]; len(got) == 0 || got[0].Type != driver.UserdataClosed {
		t.Errorf("reports before the driver is ready: %+v", got)
	}
}
