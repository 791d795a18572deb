package memory

import (
	"os"
	"testing"

	"github.com/drover-dev/drover/internal/metal/driver"
)

// TestRestartedDriverReadsUserdataFromDisks: metal deletes userdata after the first boot, and a
// simulated machine is provisioned again whenever metal starts.
func TestRestartedDriverReadsUserdataFromDisks(t *testing.T) {
	home := t.TempDir()
	open := func() *Driver {
		t.Helper()
		d, err := New(t.Context(), driver.Config{Home: home, Sink: &recorder{events: make(chan string, 100)}, Speed: 10000})
		mustDo(t, err)
		return d.(*Driver)
	}
	userdata := func(d *Driver) string { return string(d.snapshot(d.machines["x"]).Userdata) }

	d := open()
	mustDo(t, d.Ensure(t.Context(), driver.Machine{ID: "x", Userdata: []byte("#!/bin/sh\n")}, driver.On))
	mustDo(t, d.Close())
	d = open()
	mustDo(t, d.Ensure(t.Context(), driver.Machine{ID: "x"}, driver.On))
	if got := userdata(d); got != "#!/bin/sh\n" {
		t.Errorf("after a restart the machine boots with %q", got)
	}
	mustDo(t, d.Reinstall(t.Context(), driver.Machine{ID: "x"}))
	mustDo(t, d.Close())
	d = open()
	mustDo(t, d.Ensure(t.Context(), driver.Machine{ID: "x"}, driver.On))
	if got := userdata(d); got != "" {
		t.Errorf("after a reinstallation without userdata the machine boots with %q", got)
	}
	mustDo(t, d.Reinstall(t.Context(), driver.Machine{ID: "x", Userdata: []byte("secret")}))
	mustDo(t, d.Remove(t.Context(), "x"))
	mustDo(t, d.Close())
	if entries, err := os.ReadDir(d.disks.dir); err != nil || len(entries) > 0 {
		t.Errorf("a removed machine leaves %v (%v)", entries, err)
	}
}
