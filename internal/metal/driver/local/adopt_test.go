package local

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/driver/local/guest"
)

// TestAdoptedMachineReportsFirst restarts the driver after a kubelet has started while no metal
// ran. The report must arrive before the driver is ready: metal serves userdata from then on. An
// earlier version may have started the machine.
func TestAdoptedMachineReportsFirst(t *testing.T) {
	l := newLAN(t)
	d, x := l.Driver, l.station("x", 10) // stands for the machine
	port, err := netlink.LinkByName(d.linkName("x"))
	if err == nil {
		err = netlink.LinkSetBRSlaveGroupFwdMask(port, 0) // as earlier versions left it
	}
	if err != nil {
		t.Fatal(err)
	}
	reports := &sink{events: map[string][]driver.Event{}, change: make(chan struct{})}
	d.home, d.sink, d.log, d.machines = t.TempDir(), reports, slog.New(slog.DiscardHandler), map[string]*machine{}
	d.ctx, d.cancel = context.WithCancel(t.Context())
	defer d.wg.Wait()
	defer d.cancel()

	first, err := identify(x.pid)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(d.machinesDir(), "x")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]any{
		guest.SpecFile: x.spec, stateFile: first, guest.EventsFile: guest.Event{Type: driver.UserdataClosed},
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
	mask, err := os.ReadFile(filepath.Join("/sys/class/net", port.Attrs().Name, "brport/group_fwd_mask"))
	if err != nil || strings.TrimSpace(string(mask)) != fmt.Sprintf("%#x", toFilter) {
		t.Errorf("the port of an adopted machine is not secured: %q, %v", mask, err)
	}
}
