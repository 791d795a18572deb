package metal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/internal/metal/api"
	"github.com/drover-dev/drover/internal/metal/capacity"
)

func TestCapacityTables(t *testing.T) {
	r := api.CapacityReport{
		Settings: capacity.Settings{Overcommit: capacity.Overcommit{CPUs: 16, Memory: 1.5, Disk: 1}, Limits: []capacity.Limit{{Plan: "c3.small.x86", Metro: "da", Devices: 3}}},
		Host: &api.HostCapacity{
			CPUs:        api.ResourceCapacity{Real: 2, Total: 32, Used: 4, Free: 28},
			MemoryBytes: api.ResourceCapacity{Real: 24 << 30, Total: 36 << 30, Used: 4 << 30, Free: 32 << 30},
			DiskBytes:   api.ResourceCapacity{Real: 100 << 30, Total: 100 << 30, Used: 8 << 30, Free: 71<<30 + 1<<29},
		},
		Plans: []api.PlanCapacity{
			{Plan: "local.small", Used: 2, Free: ptr.To(14)},
			{Plan: "c3.small.x86", Free: ptr.To(14)},
			{Plan: "c3.small.x86", Metro: "da", Free: ptr.To(3)},
			{Plan: "m3.large.x86", Used: 1},
		},
	}
	var out bytes.Buffer
	if err := capacityTables(&out, r, false); err != nil {
		t.Fatal(err)
	}
	want := `RESOURCE   HOST      OVERCOMMIT   USED    FREE
CPUs       2         x16          4       28
memory     24 GiB    x1.5         4 GiB   32 GiB
disk       100 GiB   x1           8 GiB   71.5 GiB

PLAN           METRO   USED   FREE
local.small    any     2      14
c3.small.x86   da      0      3
m3.large.x86   any     1      unlimited
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]struct {
		limit   capacity.Limit
		limited bool
		wrong   bool
	}{
		"c3.small.x86/da=3":      {limit: capacity.Limit{Plan: "c3.small.x86", Metro: "da", Devices: 3}, limited: true},
		"any/any=0":              {limited: true},
		"any/DA=unlimited":       {limit: capacity.Limit{Metro: "da"}},
		"c3.small.x86=3":         {wrong: true},
		"c3.small.x86/da":        {wrong: true},
		"c3.small.x86/da=-1":     {wrong: true},
		"/da=1":                  {wrong: true},
		"c3.small.x86/da=plenty": {wrong: true},
	} {
		got, limited, err := parseLimit(text)
		if (err != nil) != want.wrong || err == nil && (got != want.limit || limited != want.limited) {
			t.Errorf("%s: got %+v, %v, %v", text, got, limited, err)
		}
	}
}

// TestCapacityCommands changes the capacity and the quota of a running service.
func TestCapacityCommands(t *testing.T) {
	home := t.TempDir()
	stop, _ := serve(t, home)
	expect := func(want string, args ...string) {
		t.Helper()
		got, err := run(t, NewCommand, append(args, "--home", home)...)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("%v: %v\n%s", args, err, got)
		}
	}
	reject := func(want string, args ...string) {
		t.Helper()
		if _, err := run(t, NewCommand, append(args, "--home", home)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
	expect("local.small any 0 unlimited", "capacity")
	expect("c3.small.x86 da 0 3", "capacity", "set", "--limit", "c3.small.x86/da=3", "--memory", "1.5")
	expect(`"memory": 1.5`, "capacity", "-o", "json")
	expect("m3.large.x86 any 0 2", "capacity", "set", "--limit", "any/any=2", "--limit", "c3.small.x86/da=unlimited", "--limit", "m3.large.x86/any=2")
	reject("no.such is not a valid plan", "capacity", "set", "--limit", "no.such/da=1")
	reject("at least one of the flags", "capacity", "set")
	expect("machines 0 unlimited", "project", "quota", "default")
	expect("machines 0 10 CPUs 0 unlimited memory 0 GiB 64 GiB", "project", "quota", "default", "--machines", "10", "--memory", "64Gi")
	expect("machines 0 10 CPUs 0 unlimited memory 0 GiB unlimited", "project", "quota", "default", "--memory", "unlimited")
	reject(`--cpus "1.5" is not an amount`, "project", "quota", "default", "--cpus", "1.5")
	reject(`project "other" not found`, "project", "quota", "other")
	if err := stop(); err != nil {
		t.Error(err)
	}
}
