package inventory

import (
	"strings"
	"testing"
)

func TestOnlyKubernetesIsWiped(t *testing.T) {
	for wipe, want := range map[string]string{
		"":           "",
		"kubernetes": "",
		"disks":      "erase the disk from other media",
		"everything": `"everything" is unknown`,
	} {
		if err := CheckWipe(wipe); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", wipe, err, want)
		}
	}
}
