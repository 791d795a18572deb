package local

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// abandon leaves the bridge and the packet filter of a home, as a killed driver does.
func abandon(t *testing.T, home string) *Driver {
	t.Helper()
	if err := isRoot(); err != nil {
		t.Skip(err)
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip(err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &Driver{home: home, name: Name(home), log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	t.Cleanup(func() {
		if err := d.removeNetwork(); err != nil {
			t.Error(err)
		}
	})
	var err error
	if d.network, err = d.openNetwork(); err != nil {
		t.Fatal(err)
	}
	if err := d.changePins(func() {}); err != nil {
		t.Fatal(err)
	}
	return d
}

// remains reports whether the bridge and the packet filter of a home exist. Both or neither must.
func remains(t *testing.T, d *Driver) bool {
	t.Helper()
	_, err := netlink.LinkByName(d.bridgeName())
	tables, failed := exec.Command("nft", "list", "tables").CombinedOutput()
	if failed != nil {
		t.Fatalf("listing packet filters: %v\n%s", failed, tables)
	}
	bridge, filter := err == nil, strings.Contains(string(tables), d.filterTable())
	if bridge != filter {
		t.Errorf("bridge %q exists: %t, its packet filter exists: %t, want both or neither", d.bridgeName(), bridge, filter)
	}
	return bridge
}

func bridgeOf(t *testing.T, d *Driver) netlink.Link {
	t.Helper()
	link, err := netlink.LinkByName(d.bridgeName())
	if err != nil {
		t.Fatal(err)
	}
	return link
}

func TestBridgesOfMissingHomesAreRemoved(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, d *Driver)
		want   bool
	}{
		"the home no longer exists": {func(*testing.T, *Driver) {}, false},
		"the home exists": {func(t *testing.T, d *Driver) {
			if err := os.Mkdir(d.home, 0o700); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the bridge has no mark": {func(t *testing.T, d *Driver) {
			if err := netlink.LinkSetAlias(bridgeOf(t, d), ""); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the mark names another home": {func(t *testing.T, d *Driver) {
			if err := netlink.LinkSetAlias(bridgeOf(t, d), bridgeOf(t, d).Attrs().Alias+"-other"); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the mark is of another mount namespace": {func(t *testing.T, d *Driver) {
			if err := netlink.LinkSetAlias(bridgeOf(t, d), "drover mnt:[1] "+d.home); err != nil {
				t.Fatal(err)
			}
		}, true},
		"the bridge has a port": {func(t *testing.T, d *Driver) {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.MasterIndex = d.linkName("a"), bridgeOf(t, d).Attrs().Index
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: d.linkName("b")}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := removeLink(attrs.Name); err != nil {
					t.Error(err)
				}
			})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := abandon(t, filepath.Join(dir, "killed"))
			if err := os.RemoveAll(d.home); err != nil {
				t.Fatal(err)
			}
			tt.change(t, d)
			starting := &Driver{home: dir, name: Name(dir), log: d.log}
			if err := starting.removeAbandoned(); err != nil {
				t.Fatal(err)
			}
			if got := remains(t, d); got != tt.want {
				t.Errorf("bridge %q exists after the start of another driver: got %t, want %t", d.bridgeName(), got, tt.want)
			}
		})
	}
}

func TestBridgesOfAnEarlierDroverAreMarked(t *testing.T) {
	d := abandon(t, filepath.Join(t.TempDir(), "home"))
	if err := netlink.LinkSetAlias(bridgeOf(t, d), ""); err != nil {
		t.Fatal(err)
	}
	if err := d.ensureBridge(d.network); err != nil {
		t.Fatal(err)
	}
	if got := bridgeOf(t, d).Attrs().Alias; !strings.HasSuffix(got, " "+d.home) {
		t.Errorf("got alias %q, want one that names %q", got, d.home)
	}
}

func TestStartRemovesBridgesOfMissingHomes(t *testing.T) {
	d := abandon(t, filepath.Join(t.TempDir(), "killed"))
	if err := os.RemoveAll(d.home); err != nil {
		t.Fatal(err)
	}
	newFixture(t)
	if remains(t, d) {
		t.Errorf("bridge %q still exists, want it removed with its home", d.bridgeName())
	}
}
