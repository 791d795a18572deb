package local

import (
	"testing"
)

func TestSupplyIsThatOfTheHost(t *testing.T) {
	supply, err := (&Driver{home: t.TempDir()}).Supply()
	if err != nil {
		t.Fatal(err)
	}
	if h := supply.Host; h == nil || h.CPUs < 1 || h.MemoryBytes < 1<<28 || h.DiskBytes < 1<<28 || supply.FreeDiskBytes > h.DiskBytes || supply.FreeDiskBytes <= 0 {
		t.Errorf("supply %+v of %+v", supply, *h)
	}
	if _, err := (&Driver{home: "/no/such/home"}).Supply(); err == nil {
		t.Error("a missing home has a size")
	}
}

func TestTotalMemory(t *testing.T) {
	got, err := totalMemory("MemTotal:       24576 kB\nMemFree:          100 kB\n")
	if err != nil || got != 24576<<10 {
		t.Errorf("got %d, %v", got, err)
	}
	for _, text := range []string{"", "MemFree: 100 kB\n", "MemTotal: much kB\n"} {
		if got, err := totalMemory(text); err == nil {
			t.Errorf("%q has %d bytes", text, got)
		}
	}
}
