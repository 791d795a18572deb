package capacity

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/internal/metal/driver"
)

const gib = 1 << 30

// host has room for 16 machines of the plan local.small by CPUs, 24 by memory, and 25 by disk.
func host() driver.Supply {
	return driver.Supply{Host: &driver.Resources{CPUs: 2, MemoryBytes: 24 * gib, DiskBytes: 100 * gib}, FreeDiskBytes: 100 * gib}
}

func TestFree(t *testing.T) {
	small := Order{Project: "a", Plan: "local.small", Metro: "da"}
	for name, tt := range map[string]struct {
		in    Input
		order Order
		want  int
	}{
		"nothing bounds simulated machines":                     {Input{}, small, Unlimited},
		"CPUs bound small machines":                             {Input{Supply: host()}, small, 16},
		"memory bounds machines with much of it":                {Input{Supply: host()}, Order{Plan: "m3.large.x86"}, 3},
		"machines of all projects use the host":                 {Input{Supply: host(), Used: []Use{{Project: "b", Plan: "local.large", Metro: "ny", Devices: 2}}}, small, 8},
		"reserved machines use the host too":                    {Input{Supply: host(), Used: []Use{{Project: "b", Plan: "local.small", Reserved: true, Devices: 4}}}, small, 12},
		"an overcommit counts":                                  {Input{Supply: host(), Settings: Settings{Overcommit: Overcommit{Memory: 0.5}}}, small, 6},
		"the disk bounds machines":                              {Input{Supply: host(), Settings: Settings{Overcommit: Overcommit{Disk: 0.2}}}, small, 5},
		"what others wrote to the disk counts":                  {Input{Supply: driver.Supply{Host: host().Host, FreeDiskBytes: 9 * gib}}, small, 2},
		"a host that is too full has no room":                   {Input{Supply: host(), Used: []Use{{Plan: "local.large", Devices: 100}}}, small, 0},
		"a limit of the plan and metro":                         {Input{Settings: Settings{Limits: []Limit{{"local.small", "da", 3}}}}, small, 3},
		"limits of other metros don't count":                    {Input{Settings: Settings{Limits: []Limit{{"local.small", "ny", 3}}}}, small, Unlimited},
		"a limit of a metro counts all plans":                   {Input{Settings: Settings{Limits: []Limit{{"", "da", 3}}}, Used: []Use{{Plan: "c3.small.x86", Metro: "da", Devices: 2}}}, small, 1},
		"a limit does not count reserved machines":              {Input{Settings: Settings{Limits: []Limit{{"", "da", 3}}}, Used: []Use{{Plan: "local.small", Metro: "da", Reserved: true, Devices: 2}}}, small, 3},
		"the smallest limit holds":                              {Input{Settings: Settings{Limits: []Limit{{"", "", 9}, {"local.small", "", 2}}}}, small, 2},
		"a quota of machines":                                   {Input{Quotas: map[string]Quota{"a": {Machines: ptr.To[int64](5)}}, Used: []Use{{Project: "a", Plan: "c3.small.x86", Devices: 1}, {Project: "b", Plan: "local.small", Devices: 9}}}, small, 4},
		"a quota of CPUs":                                       {Input{Quotas: map[string]Quota{"a": {CPUs: ptr.To[int64](5)}}}, small, 2},
		"a quota of memory":                                     {Input{Quotas: map[string]Quota{"a": {MemoryBytes: ptr.To[int64](3 * gib)}}}, small, 1},
		"a quota of nothing":                                    {Input{Quotas: map[string]Quota{"a": {Machines: ptr.To[int64](0)}}}, small, 0},
		"quotas of others don't count":                          {Input{Quotas: map[string]Quota{"b": {Machines: ptr.To[int64](0)}}}, small, Unlimited},
		"without a project, as for an administrator, none does": {Input{Quotas: map[string]Quota{"a": {Machines: ptr.To[int64](0)}}}, Order{Plan: "local.small"}, Unlimited},
	} {
		t.Run(name, func(t *testing.T) {
			if got := New(tt.in).Free(tt.order); got != tt.want {
				t.Errorf("%d fit, want %d", got, tt.want)
			}
		})
	}
}

// TestTakeAgreesWithFree takes one machine at a time until none fits.
func TestTakeAgreesWithFree(t *testing.T) {
	l := New(Input{Supply: host(), Settings: Settings{Limits: []Limit{{"local.small", "", 7}}}, Quotas: map[string]Quota{"a": {Machines: ptr.To[int64](4)}}})
	for project, want := range map[string]int{"a": 4, "b": 3} {
		o := Order{Project: project, Plan: "local.small", Metro: "da"}
		for left := l.Free(o); left > 0; left-- {
			if err := l.Take(o); err != nil {
				t.Fatalf("%d fit, but: %v", left, err)
			}
			want--
			if got := l.Free(o); got != left-1 {
				t.Fatalf("%d fit after one of %d was taken", got, left)
			}
		}
		if project == "a" && want != 0 {
			t.Errorf("the quota of a left %d machines", want)
		}
		if err := l.Take(o); err == nil {
			t.Error("one more was taken than fits")
		}
	}
}

func TestTakeAllTakesAllOrNothing(t *testing.T) {
	l := New(Input{Settings: Settings{Limits: []Limit{{Devices: 3}}}})
	o := Order{Project: "a", Plan: "local.small", Metro: "da"}
	if err := l.TakeAll(o, 4); err == nil {
		t.Error("4 of 3 were taken")
	}
	if err := l.TakeAll(o, 3); err != nil {
		t.Errorf("a request that did not fit has used something: %v", err)
	}
}

func TestErrorsSayWhatIsMissing(t *testing.T) {
	o := Order{Project: "a", Plan: "local.small", Metro: "da"}
	for name, tt := range map[string]struct {
		in   Input
		want string
	}{
		"host":   {Input{Supply: driver.Supply{Host: &driver.Resources{CPUs: 16, MemoryBytes: gib / 2, DiskBytes: 100 * gib}, FreeDiskBytes: 100 * gib}}, "local.small needs 2048 MiB of memory, and 1024 are free"},
		"limits": {Input{Settings: Settings{Limits: []Limit{{}}}}, "local.small needs 1 machines, and 0 are free"},
		"quota":  {Input{Quotas: map[string]Quota{"a": {CPUs: ptr.To[int64](3)}}, Used: []Use{{Project: "a", Plan: "local.small", Devices: 1}}}, "The quota of this project is 3 CPUs, and 2 are in use"},
	} {
		t.Run(name, func(t *testing.T) {
			err := New(tt.in).Take(o)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			var quota *QuotaError
			if errors.As(err, &quota) != (name == "quota") {
				t.Errorf("got %T", err)
			}
		})
	}
}

func TestSettingsAreChecked(t *testing.T) {
	nan := 0.0
	nan /= nan
	wrong := Settings{Overcommit: Overcommit{CPUs: -1, Memory: nan, Disk: 1e9}, Limits: []Limit{{"no.such", "xx", -1}, {"", "da", 1}, {"", "da", 2}, {"t1.small", "DA", 1}}}
	want := []string{
		"overcommit.cpus must be from 0 (the default) to 1000", "overcommit.memory must be from 0 (the default) to 1000", "overcommit.disk must be from 0 (the default) to 1000",
		"no.such is not a valid plan", "xx is not a valid metro", "devices of a limit can't be negative",
		`limits has two entries for plan "" in metro "da"`, "t1.small is not a valid plan", "DA is not a valid metro",
	}
	if diff := cmp.Diff(want, wrong.Problems()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	right := Settings{Overcommit: Overcommit{CPUs: 0.5}, Limits: []Limit{{"c3.small.x86", "da", 0}, {"", "da", 1}}}
	if got := right.Problems(); len(got) > 0 {
		t.Errorf("valid settings are rejected: %v", got)
	}
	if got := (Quota{Machines: ptr.To[int64](-1), CPUs: ptr.To[int64](0), MemoryBytes: ptr.To[int64](-5)}).Problems(); len(got) != 2 {
		t.Errorf("problems of a quota: %v", got)
	}
}
