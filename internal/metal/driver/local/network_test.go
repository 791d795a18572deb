package local

import (
	"net/netip"
	"testing"
)

func TestChooseAvoidsNetworksInUse(t *testing.T) {
	first, err := choose("0a1b2c3d", publicSpace(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !publicSpace().Contains(first.Addr()) || first.Bits() != subnetBits || first != first.Masked() {
		t.Fatalf("network %s is not one of %s", first, publicSpace())
	}
	again, _ := choose("0a1b2c3d", publicSpace(), nil)
	if again != first {
		t.Errorf("the choice is not stable: %s, then %s", first, again)
	}
	second, err := choose("0a1b2c3d", publicSpace(), []netip.Prefix{first})
	if err != nil || second.Overlaps(first) {
		t.Errorf("network %s, %v, while %s is used", second, err, first)
	}
	if _, err := choose("x", publicSpace(), []netip.Prefix{netip.MustParsePrefix("198.0.0.0/8")}); err == nil {
		t.Error("got a network although all are in use, want an error")
	}
}

func TestLinkNamesFitTheKernel(t *testing.T) {
	d := &Driver{name: "0a1b2c3d"}
	a, b := d.linkName("6f9619ff-8b86-d011-b42d-00c04fc964ff"), d.linkName("7f9619ff-8b86-d011-b42d-00c04fc964ff")
	if len(a) > 15 || len(d.bridgeName()) > 15 || a == b {
		t.Errorf("names %q, %q, %q", a, b, d.bridgeName())
	}
}

func TestMachineIDsAreNames(t *testing.T) {
	d := &Driver{machines: map[string]*machine{}}
	for _, id := range []string{"", ".", "..", "a/b", ".hidden"} {
		if _, err := d.machine(id); err == nil {
			t.Errorf("id %q is accepted", id)
		}
	}
}
