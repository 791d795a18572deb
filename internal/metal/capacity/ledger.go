package capacity

import (
	"slices"

	"github.com/drover-dev/drover/internal/metal/catalog"
	"github.com/drover-dev/drover/internal/metal/driver"
	"github.com/drover-dev/drover/internal/metal/inventory"
)

// Unlimited is the number of machines that fit where nothing bounds them.
const Unlimited = -1

// Use is a number of devices of one plan in one metro that a project has.
type Use struct {
	Project string `json:"project"`
	Plan    string `json:"plan"`
	Metro   string `json:"metro"`
	// Reserved devices are on hardware that is reserved for their project. Limits don't count them.
	Reserved bool `json:"reserved,omitempty"`
	Devices  int  `json:"devices"`
}

// Order is a device that a project wants.
type Order struct {
	Project, Plan, Metro string
	// Facility narrows the metro for servers of the inventory, if it is set.
	Facility string
	Reserved bool
}

// Input is what a Ledger is made from.
type Input struct {
	Supply   driver.Supply
	Settings Settings
	// Quotas are the quotas of projects, by ID.
	Quotas map[string]Quota
	Used   []Use
	// Servers is the inventory that machines get their servers from, if Inventory is set.
	Servers   []*inventory.Server
	Inventory bool
}

// Ledger is what there is and what is used at one moment. It is not safe for concurrent use.
type Ledger struct {
	in   Input
	used driver.Resources
	// free are the servers that are available.
	free []*inventory.Server
}

// New returns the ledger of an input, whose slices it copies.
func New(in Input) *Ledger {
	in.Settings = in.Settings.Complete()
	in.Used = append([]Use{}, in.Used...)
	l := &Ledger{in: in}
	for _, s := range in.Servers {
		if s.Available() {
			l.free = append(l.free, s)
		}
	}
	for _, u := range in.Used {
		l.used = add(l.used, sizeOf(u.Plan), int64(u.Devices))
	}
	return l
}

// Take counts one device, or returns why it does not fit: a *QuotaError or a *ShortageError.
func (l *Ledger) Take(o Order) error { return l.TakeAll(o, 1) }

// TakeAll counts a number of equal devices, or none of them.
func (l *Ledger) TakeAll(o Order, devices int) error {
	for _, bound := range l.bounds(o) {
		if fits := bound.fits(); fits < int64(devices) {
			return bound.exceeded(o)
		}
	}
	l.count(o, devices)
	return nil
}

// Free returns how many more devices fit, or Unlimited.
func (l *Ledger) Free(o Order) int {
	free := Unlimited
	for _, bound := range l.bounds(o) {
		if fits := int(bound.fits()); free == Unlimited || fits < free {
			free = fits
		}
	}
	return free
}

func (l *Ledger) count(o Order, devices int) {
	l.used = add(l.used, sizeOf(o.Plan), int64(devices))
	for range devices {
		taken := inventory.Choose(l.free, orderOf(o))
		l.free = slices.DeleteFunc(l.free, func(s *inventory.Server) bool { return s == taken })
	}
	for i := range l.in.Used {
		if u := &l.in.Used[i]; u.Project == o.Project && u.Plan == o.Plan && u.Metro == o.Metro && u.Reserved == o.Reserved {
			u.Devices += devices
			return
		}
	}
	l.in.Used = append(l.in.Used, Use{Project: o.Project, Plan: o.Plan, Metro: o.Metro, Reserved: o.Reserved, Devices: devices})
}

// bounds returns everything that bounds an order, the quota of its project first.
func (l *Ledger) bounds(o Order) []bound {
	return slices.Concat(l.quota(o), l.limits(o), l.servers(o), l.host(o))
}

// servers returns the bound of the inventory. A reserved server has its own.
func (l *Ledger) servers(o Order) []bound {
	if !l.in.Inventory || o.Reserved {
		return nil
	}
	b := bound{what: servers, need: 1}
	for _, s := range l.free {
		if s.Matches(orderOf(o)) {
			b.most++
		}
	}
	return []bound{b}
}

func orderOf(o Order) inventory.Order {
	return inventory.Order{Plan: o.Plan, Metro: o.Metro, Facility: o.Facility}
}

// host returns the bounds of a host. The free space on its disk counts too, because others use it.
func (l *Ledger) host(o Order) []bound {
	h := l.Host()
	if h == nil {
		return nil
	}
	need := sizeOf(o.Plan)
	return []bound{
		{what: cpus, most: h.Total.CPUs, used: h.Used.CPUs, need: need.CPUs},
		{what: memory, most: h.Total.MemoryBytes, used: h.Used.MemoryBytes, need: need.MemoryBytes},
		{what: disk, most: h.Total.DiskBytes, used: h.Used.DiskBytes, need: need.DiskBytes},
		{what: disk, most: h.FreeDiskBytes, need: need.DiskBytes},
	}
}

// limits returns the bounds that an administrator has set for a plan and a metro.
func (l *Ledger) limits(o Order) []bound {
	if o.Reserved {
		return nil
	}
	var out []bound
	for _, limit := range l.in.Settings.Limits {
		if !limit.covers(o.Plan, o.Metro) {
			continue
		}
		b := bound{what: machines, most: int64(limit.Devices), need: 1}
		for _, u := range l.in.Used {
			if !u.Reserved && limit.covers(u.Plan, u.Metro) {
				b.used += int64(u.Devices)
			}
		}
		out = append(out, b)
	}
	return out
}

// quota returns the bounds of a project.
func (l *Ledger) quota(o Order) []bound {
	q := l.in.Quotas[o.Project]
	used, need := l.UsedBy(o.Project), sizeOf(o.Plan)
	var out []bound
	for _, b := range []struct {
		most *int64
		bound
	}{
		{q.Machines, bound{what: machines, used: used.Machines, need: 1}},
		{q.CPUs, bound{what: cpus, used: used.CPUs, need: need.CPUs}},
		{q.MemoryBytes, bound{what: memory, used: used.MemoryBytes, need: need.MemoryBytes}},
	} {
		if b.most != nil {
			b.bound.most, b.ofProject = *b.most, true
			out = append(out, b.bound)
		}
	}
	return out
}

// Settings returns the settings with their defaults.
func (l *Ledger) Settings() Settings { return l.in.Settings }

// Devices returns how many devices of a plan there are in a metro; an empty metro means any.
func (l *Ledger) Devices(plan, metro string) int {
	n := 0
	for _, u := range l.in.Used {
		if u.Plan == plan && (metro == "" || u.Metro == metro) {
			n += u.Devices
		}
	}
	return n
}

// Host is what the machines of a host may use together.
type Host struct {
	// Real is what the host has, Total what machines may use, with overcommit.
	Real, Total, Used driver.Resources
	// FreeDiskBytes is what is free on the disk now, with overcommit.
	FreeDiskBytes int64
}

// Host returns the host of the machines, or nil.
func (l *Ledger) Host() *Host {
	s := l.in.Supply
	if s.Host == nil {
		return nil
	}
	o := l.in.Settings.Overcommit
	return &Host{
		Real: *s.Host, Used: l.used, FreeDiskBytes: times(s.FreeDiskBytes, o.Disk),
		Total: driver.Resources{CPUs: times(s.Host.CPUs, o.CPUs), MemoryBytes: times(s.Host.MemoryBytes, o.Memory), DiskBytes: times(s.Host.DiskBytes, o.Disk)},
	}
}

// ProjectUse is what the devices of a project use.
type ProjectUse struct {
	Machines    int64 `json:"machines"`
	CPUs        int64 `json:"cpus"`
	MemoryBytes int64 `json:"memory_bytes"`
}

// UsedBy returns what a project uses.
func (l *Ledger) UsedBy(project string) ProjectUse {
	var out ProjectUse
	for _, u := range l.in.Used {
		if u.Project == project {
			size := sizeOf(u.Plan)
			out.Machines += int64(u.Devices)
			out.CPUs += size.CPUs * int64(u.Devices)
			out.MemoryBytes += size.MemoryBytes * int64(u.Devices)
		}
	}
	return out
}

// sizeOf returns the size of a plan. A plan that is no longer in the catalog has none.
func sizeOf(plan string) driver.Resources {
	p, _ := catalog.FindPlan(plan)
	return driver.Resources{CPUs: int64(p.CPUs), MemoryBytes: p.MemoryBytes, DiskBytes: p.DiskBytes}
}

func add(sum, size driver.Resources, n int64) driver.Resources {
	return driver.Resources{CPUs: sum.CPUs + n*size.CPUs, MemoryBytes: sum.MemoryBytes + n*size.MemoryBytes, DiskBytes: sum.DiskBytes + n*size.DiskBytes}
}

func times(n int64, factor float64) int64 { return int64(float64(n) * factor) }
